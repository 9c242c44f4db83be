// The figures at the top.

import { h, at, text, attr } from "./dom.js";
import { number, percent, load, millis, plural } from "./format.js";
import { totals, shown } from "./state.js";

const tiles = new Map();

function tile(id) {
  let t = tiles.get(id);
  if (!t) {
    const value = h("div", { cls: "value" });
    const unit = h("small");
    const figure = h("span");
    value.append(figure, unit);
    const note = h("div", { cls: "note" });
    const name = h("div", { cls: "label" });
    const root = h("div", { cls: "tile", id: "tile-" + id }, name, value, note);
    at("headline").append(root);
    t = { root, name, figure, unit, note };
    tiles.set(id, t);
  }
  return t;
}

function show(id, label, figure, unit, note, alarm) {
  const t = tile(id);
  text(t.name, label);
  text(t.figure, figure);
  text(t.unit, unit);
  text(t.note, note);
  t.root.classList.toggle("alarm", !!alarm);
  return t;
}

export function drawHeadline() {
  const t = totals();
  hitRate(t);
  show("saved", "Waiting spared", number(t.saved, t.saved < 10 ? 1 : 0), "ms/s", perTask());
  budget(t);
  const tripped = t.states.tripped || 0;
  const others = ["active", "learning", "probing"].filter((s) => t.states[s]).map((s) => number(t.states[s]) + " " + s);
  show("tripped", "Tripped sites", t.live ? number(tripped) : "–", t.live ? "of " + number(t.sites) : "", others.join(" · "), tripped > 0);
  show("runs", "Pending runs", t.live ? number(t.runs) : "–", "", "standing on an open guess");
  const all = t.live > 0 && t.killed === t.live;
  show("kill", "Kill switch", !t.live ? "–" : all ? "Killed" : t.killed ? plural(t.killed, "service") : "Off", "",
    all ? "every call waits for its answer" : t.killed ? "killed, the others speculate" : "speculation may run", t.killed > 0);
}

function hitRate(t) {
  const n = t.right + t.wrong;
  const would = t.would + t.wouldWrong;
  if (n >= 1) show("hits", "Hit rate", percent(t.right / n), "", "of " + plural(Math.round(n), "recent prediction"));
  else if (would >= 1) show("hits", "Hit rate, if it were used", percent(t.would / would), "", "predictions are only compared");
  else show("hits", "Hit rate", "–", "", "no recent predictions");
}

// perTask sums up the tasks that are kept.
function perTask() {
  const all = shown().flatMap((v) => v.tasks).filter((t) => t.outcome === "confirmed").map((t) => t.saved_ns).sort((a, b) => a - b);
  if (!all.length) return shown().some((v) => v.status) && !shown().some((v) => v.tasks.length || (v.status && v.status.tasks)) ? "no task kept yet" : "";
  const median = all[all.length >> 1] / 1e6;
  return (Math.abs(median) < 0.1 ? "nothing" : millis(median)) + " in the median task";
}

function budget(t) {
  const limited = t.budget >= 0;
  const over = limited && t.extra > t.budget;
  const tile = show("load", "Extra load and budget", t.live ? load(t.extra) : "–", limited ? "of " + load(t.budget) : "", "", over);
  if (!tile.meter) {
    tile.fill = h("i");
    tile.tick = h("b");
    tile.meter = h("div", { cls: "meter", role: "meter", "aria-label": "Extra load against the budget", "aria-valuemin": "0" }, tile.fill, tile.tick);
    tile.note.before(tile.meter);
    tile.note.remove();
  }
  const end = Math.max(limited ? t.budget * 1.5 : 0.2, t.extra * 1.05, 0.001);
  tile.fill.style.width = Math.min(100, (100 * t.extra) / end) + "%";
  tile.tick.style.left = (100 * Math.max(0, t.budget)) / end + "%";
  tile.tick.hidden = !limited;
  tile.meter.classList.toggle("over", over);
  attr(tile.meter, "aria-valuemax", end.toFixed(3));
  attr(tile.meter, "aria-valuenow", t.extra.toFixed(3));
}
