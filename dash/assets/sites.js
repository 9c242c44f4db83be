// The table of sites.

import { h, s, at, put, text, attr, keyed } from "./dom.js";
import { number, percent, load, millis, span, split, plural } from "./format.js";
import { state, shown, rates, per, judged, trend } from "./state.js";
import { changeMode, nameOf } from "./switches.js";

const columns = [
  { id: "site", name: "Site", by: (a) => a.name, up: true },
  { id: "mode", name: "Mode", by: (a) => ["off", "observe", "shadow", "canary", "on"].indexOf(a.mode) + (a.share || 0) },
  { id: "state", name: "State", by: (a) => ["learning", "active", "probing", "tripped"].indexOf(a.state) },
  { id: "hit", name: "Hit rate and break-even", by: (a) => judged(a).rate || 0 },
  { id: "saved", name: "Spared", num: true, by: (a) => per(rates(a), "saved") },
  { id: "wasted", name: "In vain", num: true, by: (a) => per(rates(a), "wasted") },
  { id: "calls", name: "Calls", num: true, by: (a) => per(rates(a), "calls") },
  { id: "trend", name: "Hit rate, 10 min" },
];

const sorting = { id: "calls", down: true };
const FIRST = 25; // rows that are shown at once
let table;

export function initSites(redraw) {
  at("sites-filter").addEventListener("input", redraw);
  at("sites-state").addEventListener("change", redraw);
  const phone = at("sites-sort");
  for (const c of columns) if (c.by) phone.append(h("option", { value: c.id }, "by " + c.name.toLowerCase()));
  phone.value = sorting.id;
  phone.addEventListener("change", () => {
    sorting.id = phone.value;
    sorting.down = !columns.find((c) => c.id === sorting.id).up;
    redraw();
  });
  const head = columns.map((c) => {
    if (!c.by) return h("th", { scope: "col", cls: "col-" + c.id }, c.name);
    const sort = () => {
      sorting.down = sorting.id === c.id ? !sorting.down : !c.up;
      sorting.id = phone.value = c.id;
      redraw();
    };
    return (c.th = h("th", { scope: "col", cls: "col-" + c.id + (c.num ? " num" : "") }, h("button", { type: "button", onclick: sort }, c.name)));
  });
  table = { body: h("tbody"), none: h("div", { cls: "empty", hidden: true }) };
  table.root = h("table", { cls: "sites" }, h("thead", null, h("tr", null, head)), table.body);
  table.more = h("button", {
    type: "button", cls: "more", hidden: true,
    onclick: () => {
      table.all = !table.all;
      redraw();
    },
  });
  put(at("sites-body"), table.root, table.none, table.more);
}

export function drawSites() {
  const all = shown().flatMap((v) => (v.status ? v.status.sites : []));
  const words = at("sites-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = at("sites-state").value;
  const list = all.filter((a) => (!wanted || a.state === wanted) && words.every((w) => (a.name + " " + (a.conn || "") + " " + a.service.info.name).toLowerCase().includes(w)));
  arrange(list);
  for (const c of columns) if (c.th) attr(c.th, "aria-sort", c.id === sorting.id ? (sorting.down ? "descending" : "ascending") : null);
  text(at("sites-count"), all.length ? (list.length < all.length ? `${number(list.length)} of ${number(all.length)}` : number(all.length)) : "");
  table.root.hidden = !list.length;
  table.none.hidden = !!list.length;
  if (!list.length) put(table.none, all.length ? noMatch() : noSites());
  table.more.hidden = list.length <= FIRST;
  text(table.more, table.all ? "Show the first only" : `Show all ${number(list.length)}`);
  keyed(table.body, table.all ? list : list.slice(0, FIRST), (a) => a.key, makeRow, updateRow);
}

let order = { key: "", at: 0, of: new Map() };

// arrange sorts the sites. As figures change all the time, an order holds for a
// while, and as long as somebody points at it or works in it with the keys.
function arrange(list) {
  const { by } = columns.find((c) => c.id === sorting.id);
  const key = [sorting.id, sorting.down, list.length, ...list.map((a) => a.key).sort()].join("|");
  const now = performance.now();
  if (key !== order.key || (now - order.at > 10000 && !table.body.matches(":hover, :focus-within"))) {
    list.sort((a, b) => {
      const [x, y] = [by(a), by(b)];
      const less = typeof x === "string" ? x.localeCompare(y) : (x || 0) - (y || 0);
      return (sorting.down ? -less : less) || (a.key < b.key ? -1 : 1);
    });
    // Before there are rates the order means nothing.
    const early = list.some((a) => Number.isNaN(per(rates(a), "calls")));
    order = { key: early ? "" : key, at: now, of: new Map(list.map((a, i) => [a.key, i])) };
    return;
  }
  list.sort((a, b) => order.of.get(a.key) - order.of.get(b.key));
}

const noMatch = () => [h("strong", null, "No site fits the filter"), "Clear the filter to see all sites."];

function noSites() {
  if (!shown().some((v) => v.status)) return [h("strong", null, "Waiting for the first figures"), "They come once a second."];
  return [
    h("strong", null, "No site yet"),
    "A site is a method that this process calls. Give your connections the Control that this page shows, and make a call:",
    h("pre", null, 'control, err := foresay.NewControl(foresay.ControlConfig{})\nconn, err := specgrpc.NewClient(target, specgrpc.WithControl(control), …)'),
  ];
}

function makeRow(site) {
  const { method, service } = split(site.name);
  const r = { mode: h("div"), origin: h("div", { cls: "sub" }), state: h("span", { cls: "state" }), why: h("div", { cls: "sub why" }) };
  const td = (id, label, ...children) => h("td", { cls: "col-" + id + (columns.find((c) => c.id === id).num ? " num" : ""), "data-label": label }, children);
  const pair = (name) => [(r[name] = h("div")), (r[name + "Sub"] = h("div", { cls: "sub" }))];
  r.rate = h("b");
  r.even = h("span");
  r.fill = h("i");
  r.tick = h("b");
  r.meter = h("div", { cls: "meter" }, r.fill, r.tick);
  r.path = s("path");
  const spark = s("svg", { cls: "spark", viewBox: "0 0 112 30", preserveAspectRatio: "none", "aria-hidden": "true" }, s("line", { x1: 0, x2: 112, y1: 28, y2: 28 }), r.path);
  r.sub = h("div", { cls: "sub" });
  const tr = h("tr", { "data-site": site.name },
    td("site", null, h("div", { cls: "name" }, method), r.sub),
    td("mode", null, r.mode, r.origin),
    td("state", null, r.state, r.why),
    td("hit", null, h("div", { cls: "hit" }, h("div", { cls: "row" }, r.rate, r.even), r.meter)),
    td("saved", "spared", pair("saved")), td("wasted", "in vain", pair("wasted")), td("calls", "calls", pair("calls")),
    h("td", { cls: "col-trend" }, spark));
  r.service = service;
  tr.parts = r;
  return tr;
}

function updateRow(tr, site) {
  const r = tr.parts;
  text(r.sub, [r.service, (site.conn || "").replace(/^\w+:\/\/\//, ""), state.selected === "all" && state.services.size > 1 ? site.service.info.name : ""].filter(Boolean).join(" · "));
  updateMode(r, site);
  r.state.className = "state " + site.state;
  text(r.state, site.state);
  text(r.why, why(site));
  updateHits(r, site);
  const rate = rates(site);
  const calls = per(rate, "calls");
  const wasted = per(rate, "wasted");
  const saved = per(rate, "saved");
  text(r.saved, number(saved, saved < 100 ? 1 : 0));
  text(r.savedSub, "ms/s");
  text(r.wasted, number(wasted, wasted < 10 ? 1 : 0));
  text(r.wastedSub, "calls/s, " + load(site.extra_load));
  text(r.calls, number(calls, calls < 10 ? 1 : 0));
  text(r.callsSub, "per s");
  updateTrend(r, site);
}

function why(site) {
  if (site.state === "tripped" && !site.service.status.killed) {
    const now = Date.parse(site.service.status.at) + (performance.now() - site.service.arrived);
    const left = (Date.parse(site.until) - now) / 1000;
    return (left > 0 ? `probes in ${span(left)}: ` : "probes at the next call: ") + site.reason;
  }
  if (site.service.status.killed) return "the kill switch has stopped all predictions";
  if (site.mode === "off") return "no predictions are made";
  if (site.state === "probing") return "tries a few predictions";
  if (site.mode === "observe") return "observed only, nothing is used";
  if (!site.predictors && !site.stats.predicted) return "no predictors: nothing is predicted";
  if (site.mode === "shadow") return "work on predictions is started and thrown away";
  if (site.state === "learning") return "too few predictions judged";
  const j = judged(site);
  return "from " + plural(Math.round(j.n), "recent prediction");
}

function updateHits(r, site) {
  const j = judged(site);
  const below = !j.why && j.rate < site.break_even;
  text(r.rate, percent(j.rate));
  text(r.even, j.why || "needs " + percent(site.break_even));
  r.meter.className = "meter" + (below ? " below" : "") + (j.why ? " seen" : "");
  r.fill.style.width = (100 * (j.rate || 0)).toFixed(1) + "%";
  r.fill.hidden = !(j.rate > 0);
  r.tick.style.left = (100 * site.break_even).toFixed(1) + "%";
  r.tick.hidden = j.why !== "";
  attr(r.meter, "title", j.why || `right ${percent(j.rate, 1)}, breaks even at ${percent(site.break_even, 1)}`);
}

function updateTrend(r, site) {
  const list = trend(site);
  let d = "";
  if (list.length > 1) {
    const end = list[list.length - 1].t;
    const start = Math.max(end - 600e3, Math.min(list[0].t, end - 120e3));
    for (const p of list) d += (d ? "L" : "M") + (112 * ((p.t - start) / (end - start))).toFixed(1) + " " + (28 - 26 * p.rate).toFixed(1);
  }
  attr(r.path, "d", d || null);
}

const modes = [["off"], ["observe"], ["shadow", 0.01], ["shadow", 0.1], ["canary", 0.01], ["canary", 0.1], ["canary", 0.5], ["on"]];

function updateMode(r, site) {
  const name = nameOf(site.mode, site.share);
  const may = site.service.info.switch && site.service.info.up;
  const from = { code: "set in code", file: "set by file", runtime: "set here" }[site.origin] || site.origin;
  text(r.origin, site.origin === "runtime" ? "set at run time" : from);
  if (!may) {
    if (r.select || r.mode.firstChild === null) put(r.mode, (r.badge = h("span")));
    r.select = null;
    r.choosing = false;
    r.badge.className = "badge " + site.mode;
    text(r.badge, name);
    return;
  }
  if (!r.select) makeMode(r, site);
  r.site = site;
  const options = modes.map(([m, share]) => [share === undefined ? m : `${m} ${share}`, nameOf(m, share)]);
  const now = modeOf(site);
  if (!options.some(([v]) => v === now)) options.push([now, name]);
  if (site.origin === "runtime") options.push(["default", "as configured"]);
  const key = JSON.stringify(options);
  if (r.options !== key && !r.choosing) {
    r.options = key;
    put(r.select, options.map(([v, n]) => h("option", { value: v }, n)));
  }
  r.select.className = "mode " + site.mode;
  if (r.select.value !== now && !r.choosing) r.select.value = now;
}

const modeOf = (site) => (site.share && (site.mode === "shadow" || site.mode === "canary") ? `${site.mode} ${site.share}` : site.mode);

// makeMode makes what a mode is chosen with. To choose changes nothing: Apply does, once what it does is agreed to.
function makeMode(r, site) {
  const about = site.name + (site.conn ? " at " + site.conn : "");
  r.select = h("select", { "aria-label": "Mode of " + about });
  const stop = () => {
    r.choosing = false;
    r.apply.hidden = r.reset.hidden = true;
    r.select.value = modeOf(r.site);
  };
  r.apply = h("button", { type: "button", cls: "button small", hidden: true, "aria-label": "Apply the chosen mode to " + about }, "Apply\u2026");
  r.reset = h("button", { type: "button", cls: "button small", hidden: true, "aria-label": "Reset the mode of " + about }, "Reset");
  r.select.addEventListener("change", () => {
    r.choosing = r.select.value !== modeOf(r.site);
    r.apply.hidden = r.reset.hidden = !r.choosing;
  });
  r.reset.addEventListener("click", () => {
    stop();
    r.select.focus();
  });
  r.apply.addEventListener("click", async () => {
    const [mode, share] = r.select.value.split(" ");
    const changed = await changeMode(r.site, mode, Number(share) || 0);
    r.select.focus(); // Apply goes away, or the dialog gave the focus back to it
    if (changed) stop();
  });
  put(r.mode, r.select, h("div", { cls: "apply" }, r.apply, r.reset));
  r.options = "";
}
