// One task: the tree of its runs and their calls, and what each did when.

import { h, put } from "./dom.js";
import { nanos, millis, number, short, plural, clock } from "./format.js";

const ROWS = 200;

// model makes a report ready for drawing. It may come from anywhere, so times are
// put in order, and references to what is not there lead nowhere.
export function model(task) {
  const calls = new Map(task.calls.map((c) => [c.id, c]));
  const runs = task.runs.map((r) => ({ ...r, steps: r.steps || [], kids: [], own: [] }));
  const byId = new Map(runs.map((r) => [r.id, r]));
  const maker = new Map();
  const refuters = new Set(runs.map((r) => r.refuted_by).filter(Boolean));
  const taken = new Set();
  let end = Math.max(task.duration_ns, 1000);
  for (const r of runs) {
    end = Math.max(end, r.started_ns, r.ended_ns);
    for (const s of r.steps) {
      if (s.prediction >= 0) taken.add(s.call);
      if (!maker.has(s.call)) maker.set(s.call, r);
    }
  }
  for (const c of task.calls) {
    for (const t of [c.made_ns, c.answered_ns, c.abandoned_ns, c.confirmed_ns, ...(c.predicted_ns || [])]) end = Math.max(end, t);
  }
  for (const r of runs) {
    const parent = byId.get(r.replay_of);
    if (parent && parent !== r && parent.id < r.id) parent.kids.push(r);
    else r.top = true;
    for (const s of r.steps) {
      const call = calls.get(s.call);
      if (call) r.own.push({ step: s, call, adopted: maker.get(s.call) !== r || s.adopted });
    }
  }
  const lines = [];
  const walk = (r, depth) => {
    lines.push(runLine(r, depth, end));
    for (const o of r.own) lines.push(callLine(o, r, depth + 1, end, { taken, refuters }));
    for (const k of r.kids) walk(k, depth + 1);
  };
  runs.filter((r) => r.top).forEach((r) => walk(r, 0));
  const rest = task.calls.filter((c) => !maker.has(c.id));
  for (const c of rest) lines.push(callLine({ call: c, step: null, adopted: false }, null, 0, end, { taken, refuters }));
  return { lines: lines.slice(0, ROWS), cut: Math.max(0, lines.length - ROWS) + (task.cut || 0), end };
}

// segments joins phases without gaps, from `from` to `to`.
function segments(from, to, first, changes) {
  const out = [{ from, to, cls: first }];
  for (const c of changes.sort((a, b) => a.at - b.at)) {
    const t = Math.min(Math.max(c.at, from), to);
    const last = out[out.length - 1];
    if (last.from === t) last.cls = c.cls;
    else if (last.cls !== c.cls) {
      last.to = t;
      out.push({ from: t, to, cls: c.cls });
    }
  }
  return out;
}

function runLine(r, depth, end) {
  const from = Math.max(r.started_ns, 0);
  const to = Math.max(from, r.ended_ns >= 0 ? r.ended_ns : end);
  const fate = r.state === "confirmed" || r.state === "discarded" ? r.state : "open";
  const changes = [];
  for (const s of r.steps) {
    const until = s.resumed_ns >= 0 ? s.resumed_ns : to;
    if (until > s.at_ns) changes.push({ at: s.at_ns, cls: fate + " waiting" }, { at: until, cls: fate });
  }
  const code = r.returned_ns >= 0 ? changes.filter((c) => c.at < r.returned_ns) : changes;
  if (r.returned_ns >= 0) code.push({ at: r.returned_ns, cls: fate + " returned" });
  const what = r.replay_of ? `, replay of run ${r.replay_of}` : r.cause ? ", takes another prediction" : "";
  const events = [["Started", r.started_ns]];
  if (r.returned_ns >= 0) events.push(["Its code returned", r.returned_ns]);
  if (r.ended_ns >= 0) events.push([fate === "confirmed" ? "Confirmed" : "Discarded", r.ended_ns, r.refuted_by ? `by the answer to call ${r.refuted_by}` : ""]);
  return {
    kind: "run", depth, name: `Run ${r.id}`, id: "", fate, segs: segments(from, to, fate, code),
    marks: r.ended_ns >= 0 ? [verdictMark(fate, r.ended_ns)] : [],
    note: `${nanos(to - from)} · ${fate}`, title: `Run ${r.id}${what}`, events, nested: depth > 0,
  };
}

const verdictMark = (fate, t) => ({ at: t, cls: "verdict " + fate, glyph: fate === "confirmed" ? "\u2713" : "\u2715" });

function callLine({ call: c, step, adopted }, run, depth, end, { taken, refuters }) {
  const abandoned = c.abandoned_ns >= 0;
  const from = Math.max(adopted && step ? step.at_ns : c.made_ns, 0);
  const last = c.answered_ns >= 0 ? c.answered_ns : abandoned ? c.abandoned_ns : end;
  const inVain = abandoned && !(run && run.state === "confirmed");
  const fate = inVain ? "discarded" : adopted ? "adopted" : c.confirmed_ns >= 0 || c.answered_ns >= 0 ? "confirmed" : "open";
  let changes = [];
  if (!adopted) {
    for (const held of c.held || []) changes.push({ at: held.at_ns, cls: "held" });
    for (const s of c.sent || []) {
      const guess = s.speculative && !(c.confirmed_ns >= 0 && c.confirmed_ns <= s.at_ns);
      changes.push({ at: s.at_ns, cls: fate + (guess ? " guess" : "") });
      if (guess && c.confirmed_ns > s.at_ns) changes.push({ at: c.confirmed_ns, cls: fate });
    }
  }
  // What was adopted when it had been answered has no length, but is to be seen.
  const to = Math.max(from + (adopted ? end / 60 : 0), last);
  const local = !(c.sent || []).length && !(c.held || []).length;
  const segs = segments(from, to, adopted || local ? fate : "held", changes);
  const marks = [];
  if (!adopted) for (const t of c.predicted_ns || []) marks.push({ at: t, cls: "predicted" });
  if (c.answered_ns >= 0 && (!adopted || c.answered_ns >= from)) marks.push({ at: c.answered_ns, cls: "answered" });
  // A call is given up for good some time after the run that made it.
  if (!adopted && abandoned) marks.push(verdictMark("discarded", Math.min(c.abandoned_ns, Math.max(last, run ? run.ended_ns : 0))));
  const [word, cls] = verdict(c, step, adopted, inVain, taken, refuters);
  return {
    kind: "call", depth, id: String(c.id), name: short(c.site), fate, segs, marks, noteClass: cls,
    note: `${nanos(Math.max(0, last - from))} · ${word}`, title: `Call ${c.id}, ${c.site}` + (c.lane ? `, lane ${c.lane}` : ""),
    events: callEvents(c, step, adopted),
  };
}

function verdict(c, step, adopted, inVain, taken, refuters) {
  if (adopted) return ["adopted", "adopted"];
  if (refuters.has(c.id) && c.match < 0) return ["guess wrong", "discarded"];
  if (inVain) return ["discarded", "discarded"];
  if (c.answered_ns < 0) return ["no answer", ""];
  if (c.match > 0) return [`${ordinal(c.match)} guess right`, "confirmed"];
  if (c.match === 0) return ["guess right", "confirmed"];
  if (taken.has(c.id)) return ["guess wrong", "discarded"];
  if (c.error) return ["failed", "discarded"];
  return ["answered", ""];
}

const ordinal = (i) => ["1st", "2nd", "3rd"][i] || `${i + 1}th`;

function callEvents(c, step, adopted) {
  const events = [];
  if (adopted && step) events.push(["Adopted", step.at_ns, "an earlier run had made it"]);
  events.push(["Made", c.made_ns]);
  for (const held of c.held || []) events.push(["Held", held.at_ns, held.reason]);
  for (const s of c.sent || []) events.push(["Sent", s.at_ns, s.speculative ? "on a guess" : ""]);
  for (const t of c.predicted_ns || []) events.push(["Predicted", t]);
  if (c.answered_ns >= 0) events.push(["Answered", c.answered_ns, c.error || (c.match > 0 ? `as the ${ordinal(c.match)} prediction said` : c.match === 0 ? "as predicted" : "")]);
  if (c.confirmed_ns >= 0) events.push(["Caller confirmed", c.confirmed_ns]);
  if (c.abandoned_ns >= 0) events.push(["Discarded", c.abandoned_ns]);
  return events.sort((a, b) => a[1] - b[1]);
}

// ticks returns about n round times.
function ticks(end, n) {
  const unit = 10 ** Math.floor(Math.log10(end / n));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= end / n);
  const out = [];
  for (let t = 0; t <= end * 0.999 && out.length <= 2 * n; t += step) out.push(t);
  return out;
}

export function drawTask(box, task) {
  const m = model(task);
  const share = (t) => (100 * Math.min(Math.max(t, 0), m.end)) / m.end;
  const marks = ticks(m.end, box.clientWidth < 560 ? 4 : 8);
  const detail = h("div", { cls: "detail", id: "task-detail" });
  const lines = m.lines.map((l) => line(l, share, marks, detail));
  const ok = task.outcome === "confirmed";
  const facts = [
    ["took", nanos(task.duration_ns)], ["saved", nanos(task.saved_ns)], ["runs", number(task.runs.length)],
    ["calls", number(task.calls.length)], ["in vain", number(task.wasted)], ["at", clock(task.start)],
  ];
  const axis = h("div", { cls: "line axis-line", "aria-hidden": "true" }, h("div", { cls: "label" }),
    h("div", { cls: "track" }, marks.map((t) => h("span", { style: { left: share(t) + "%" } }, t ? millis(t / 1e6) : "0"))), h("div", { cls: "note" }));
  put(box,
    h("div", { cls: "task-title" }, h("h3", null, task.task || "unnamed task"), h("span", { cls: ok ? "outcome" : "outcome fail" }, ok ? "\u2713 confirmed" : "\u2715 " + task.outcome)),
    h("div", { cls: "facts" }, facts.map(([name, v]) => h("span", null, name + " ", h("b", null, v)))),
    h("div", { cls: "lines", role: "list", "aria-label": "Runs and calls of the task" }, axis, lines),
    m.cut ? h("p", { cls: "muted" }, plural(m.cut, "more run or call") + " not shown") : null, detail, legend());
  describe(detail, m.lines[0]);
  move(lines);
}

function line(l, share, marks, detail) {
  const segs = l.segs.map((s, i) => h("i", {
    cls: `seg ${s.cls}${i === 0 ? " first" : ""}${i === l.segs.length - 1 ? " last" : ""}`,
    style: { left: share(s.from) + "%", width: share(s.to) - share(s.from) + "%" },
  }));
  const dots = l.marks.map((p) => h("i", { cls: "mark " + p.cls, style: { left: share(p.at) + "%" } }, p.glyph || ""));
  const words = l.events.map(([name, t, more]) => `${name} at ${nanos(t)}${more ? " (" + more + ")" : ""}`).join(", ");
  const e = h("div", { cls: `line ${l.kind}${l.nested ? " nested" : ""}`, role: "listitem", tabindex: -1, "aria-label": `${l.title}: ${l.note}. ${words}`, style: { "--depth": l.depth } },
    h("div", { cls: "label", title: l.title }, l.id ? h("span", { cls: "id" }, l.id) : null, l.name),
    h("div", { cls: "track" }, marks.map((t) => h("i", { cls: "tick", style: { left: share(t) + "%" } })), segs, dots),
    h("div", { cls: "note " + (l.noteClass ?? l.fate) }, l.note));
  e.addEventListener("pointerenter", () => describe(detail, l));
  e.addEventListener("focus", () => describe(detail, l));
  return e;
}

function describe(detail, l) {
  if (!l) return;
  put(detail, h("b", null, l.title), h("div", { cls: "events" }, l.events.map(([name, t, more]) => h("span", null, h("b", null, name), " ", nanos(t), more ? ", " + more : ""))));
}

// move lets the arrow keys go through the lines, of which one is a stop of Tab.
function move(lines) {
  if (lines.length) lines[0].tabIndex = 0;
  lines.forEach((e, i) => e.addEventListener("keydown", (ev) => {
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: lines.length - 1 }[ev.key];
    if (to === undefined || !lines[to]) return;
    ev.preventDefault();
    e.tabIndex = -1;
    lines[to].tabIndex = 0;
    lines[to].focus();
  }));
}

function legend() {
  const box = (cls, name, thin) => h("span", null, h("i", { cls: "box" + (thin ? " thin" : "") }, h("i", { cls: "seg " + cls })), name);
  const mark = (cls, name, glyph) => h("span", null, h("i", { cls: "box" }, h("i", { cls: "mark " + cls }, glyph || "")), name);
  return h("div", { cls: "legend", role: "group", "aria-label": "Legend" },
    box("confirmed", "confirmed"), box("confirmed guess", "confirmed later, sent on a guess"), box("discarded", "discarded"),
    box("adopted", "adopted by a later run"), box("held", "held back"),
    mark("predicted", "predicted"), mark("answered", "answered"), mark("verdict confirmed", "run confirmed", "\u2713"), mark("verdict discarded", "discarded", "\u2715"));
}
