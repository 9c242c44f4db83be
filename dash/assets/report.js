// What observing came to: per kind of request, which methods are worth it.

import { h, at, put, text } from "./dom.js";
import { number, percent, load, millis, short, plural, span } from "./format.js";
import { state, shown } from "./state.js";

const drawn = new Map(); // by service, the report that is on the page
const open = new Set(); // which methods' configurations are unfolded

export function drawReport() {
  const views = shown().filter((v) => v.report);
  at("report").hidden = !views.length;
  const key = views.map((v) => v.id + v.report.at).join();
  if (drawn.get("key") === key || at("report-body").contains(document.activeElement)) return;
  drawn.set("key", key);
  const kinds = views.flatMap((v) => (v.report.requests || []).map((r) => ({ v, r })));
  const since = Math.min(...views.map((v) => Date.parse(v.report.since)));
  text(at("report-count"), kinds.length ? "observed for " + span((Date.parse(views[0].report.at) - since) / 1000) : "");
  put(at("report-body"), kinds.length ? kinds.map(({ v, r }) => request(v, r)) : empty());
}

const empty = () => h("div", { cls: "empty" }, h("strong", null, "No request has ended yet"),
  "Requests are what comes in: have the service's server begin them, with observe's interceptor or middleware.");

function request(v, r) {
  const figures = [
    plural(r.requests, "request"), `median ${millis(r.latency.p50_ms)}`, `95 % within ${millis(r.latency.p95_ms)}`,
    r.failed ? percent(r.failed / r.requests, 1) + " failed" : "",
  ].filter(Boolean);
  return h("div", { cls: "request" },
    h("div", { cls: "request-head" },
      h("div", { cls: "name" }, short(r.name), state.selected === "all" && state.services.size > 1 ? h("span", { cls: "muted" }, " · " + v.info.name) : null),
      h("div", { cls: "sub" }, figures.join(" · ")),
      h("p", null, sentence(r.summary)),
      r.realised && !r.realised.untaken ? h("p", { cls: "sub" }, `Saved so far: ${millis(r.realised.saved_ms)} per request over ${plural(r.realised.requests, "request")}, extra load ${load(r.realised.extra_load)}.`) : null,
      r.canary ? canary(r.canary) : null),
    (r.methods || []).length ? methods(v, r) : null);
}

function canary(c) {
  return h("p", { cls: "canary" }, h("b", null, c.left ? "Mode on. " : "Canary. "), sentence(c.summary), " ",
    h("span", { cls: "sub" }, `${plural(c.on.requests, "request")} with speculation, ${number(c.off.requests)} without.`));
}

// sentence makes one of what was written to stand in another.
const sentence = (s) => s && s[0].toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? "" : ".");

const classes = { "worth it": "yes", "not worth it": "no", "has effects": "no", "tripped": "no", "too early to tell": "wait" };

// guesser says where a method's guesses come from.
function guesser(v, m) {
  if (m.predictors) return plural(m.predictors, "predictor");
  const sites = ((v.status && v.status.sites) || []).filter((site) => site.name === m.name);
  const told = sites.some(({ stats }) => stats.predicted > 0 || stats.right + stats.wrong > 0);
  return told ? "predicted by the server or the code" : "last response";
}

function methods(v, r) {
  const head = [["Method"], ["Verdict"], ["Hit rate", 1], ["Needs", 1], ["Would save", 1], ["Extra load", 1]];
  return h("table", { cls: "verdicts" },
    h("thead", null, h("tr", null, head.map(([name, num]) => h("th", { scope: "col", cls: num ? "num" : null }, name)))),
    h("tbody", null, r.methods.map((m) => {
      const id = v.id + r.name + m.name;
      return h("tr", null,
        h("td", { cls: "wide col-method" }, h("div", { cls: "name" }, short(m.name)), h("div", { cls: "sub" }, [plural(m.calls, "call"), m.mode, guesser(v, m)].filter(Boolean).join(" · "))),
        h("td", { cls: "wide col-verdict" }, h("span", { cls: "verdict " + (classes[m.verdict] || "wait") }, m.verdict), h("div", { cls: "sub" }, sentence(m.why)), m.configure ? configure(id, m.configure) : null),
        h("td", { cls: "num", "data-label": "hit rate" }, m.guessed ? percent(m.hit_rate, 1) : "–", m.guessed ? h("div", { cls: "sub" }, `${percent(m.hit_rate_low)} – ${percent(m.hit_rate_high)}`) : null),
        h("td", { cls: "num", "data-label": "needs" }, m.guessed && m.compared !== false ? percent(m.break_even) : "–"),
        h("td", { cls: "num", "data-label": "would save" }, m.foreseen !== false ? [millis(Math.max(m.saved_ms, m.saved_alone_ms)), h("div", { cls: "sub" }, "per request")] : "–"),
        h("td", { cls: "num", "data-label": "extra load" }, m.foreseen !== false ? load(m.extra_load) : "–"));
    })));
}

function configure(id, textOf) {
  const d = h("details", { cls: "configure", open: open.has(id) }, h("summary", null, "What to configure"), h("pre", null, textOf));
  d.addEventListener("toggle", () => (d.open ? open.add(id) : open.delete(id)));
  return d;
}
