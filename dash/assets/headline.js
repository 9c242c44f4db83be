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
  saved(t);
  errors();
  hitRate(t);
  budget(t);
  const tripped = t.states.tripped || 0;
  const others = ["active", "learning", "probing"].filter((s) => t.states[s]).map((s) => number(t.states[s]) + " " + s);
  show("tripped", "Tripped sites", t.live ? number(tripped) : "–", t.live ? "of " + number(t.sites) : "", others.join(" · "), tripped > 0);
  const all = t.live > 0 && t.killed === t.live;
  show("kill", "Kill switch", !t.live ? "–" : all ? "Killed" : t.killed ? plural(t.killed, "service") : "Off", "",
    all ? "every call waits for its answer" : t.killed ? "killed, the others speculate" : t.runs ? plural(t.runs, "run") + " on open guesses" : "speculation may run", t.killed > 0);
}

// kinds are the kinds of request of which the shown services have reports.
const kinds = () => shown().flatMap((v) => (v.report && v.report.requests) || []);

// mean weighs what figure returns of each kind of request by how many requests it is of.
function mean(list, weight, figure) {
  let [sum, n] = [0, 0];
  for (const k of list) {
    sum += weight(k) * figure(k);
    n += weight(k);
  }
  return n > 0 ? sum / n : NaN;
}

// against says what requests a comparison compares: those that a canary put on their sides, those that mode on leaves without, or both.
function against({ left, on, off }) {
  const canary = on.by_canary + off.by_canary;
  const without = left ? `against the ${percent(left)} left without` : "against those left without";
  if (!canary) return without;
  return canary === on.requests + off.requests ? "by the canary" : `by the canary and ${without}`;
}

// saved shows what a request saves: as a comparison with requests without measures it if there is one, else as the tasks reckon, else as it is foreseen.
function saved(t) {
  const rate = `${number(t.saved, t.saved < 10 ? 1 : 0)} ms/s in all`;
  const all = kinds();
  const measured = all.filter((k) => k.canary && k.canary.mean_ms);
  const realised = all.filter((k) => k.realised && k.realised.requests && !k.realised.untaken);
  const foreseen = all.filter((k) => k.foreseen && k.foreseen.requests);
  const put = (label, ms, note) => {
    const [figure, unit] = Math.abs(ms) < 0.05 ? ["0", "ms"] : millis(ms).split("\u202f");
    show("saved", label, figure, unit, note, ms < -0.5);
  };
  if (measured.length === 1) {
    const { mean_ms: { value, low, high } } = measured[0].canary;
    return put("Saved per request", -value, `${against(measured[0].canary)}, ${number(-high, 1)} to ${number(-low, 1)}`);
  }
  if (measured.length) return put("Saved per request", mean(measured, (k) => k.canary.on.requests, (k) => -k.canary.mean_ms.value), `by ${measured.length} comparisons`);
  if (realised.length) return put("Saved per request", mean(realised, (k) => k.realised.requests, (k) => k.realised.saved_ms), rate);
  const tasks = shown().flatMap((v) => v.tasks).filter((k) => k.outcome === "confirmed");
  if (!all.length && tasks.length) return put("Saved per task", mean(tasks, () => 1, (k) => k.saved_ns / 1e6), rate);
  if (foreseen.length) return put("Could be saved per request", mean(foreseen, (k) => k.foreseen.requests, (k) => k.foreseen.saved_ms), "nothing is used yet");
  show("saved", "Saved per request", "–", "", t.live && !tasks.length ? "no request or task yet" : "");
}

// errors shows how many requests fail: of late, if some ended of late.
function errors() {
  const all = kinds();
  const late = all.map((k) => k.recent).filter((k) => k && k.requests);
  const of = late.length ? late : all;
  const n = of.reduce((sum, k) => sum + k.requests, 0);
  const failed = of.reduce((sum, k) => sum + (k.failed || 0), 0);
  if (n) show("errors", "Error rate", percent(failed / n, failed && failed / n < 0.1 ? 2 : 0), "", `${number(failed)} of ${plural(n, "request")}`, failed / n > 0.05);
  else show("errors", "Error rate", "–", "", shown().some((v) => v.info.report) ? "no request yet" : "requests are not observed");
}

function hitRate(t) {
  const n = t.right + t.wrong;
  const would = t.would + t.wouldWrong;
  if (n >= 1) show("hits", "Hit rate", percent(t.right / n), "", "of " + plural(Math.round(n), "recent prediction"));
  else if (would >= 1) show("hits", "Hit rate, if it were used", percent(t.would / would), "", "predictions are only compared");
  else show("hits", "Hit rate", "–", "", "no recent predictions");
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
