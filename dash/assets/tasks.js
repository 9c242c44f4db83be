// The list of recent tasks.

import { h, at, put, text, attr, keyed } from "./dom.js";
import { number, nanos, clock, plural } from "./format.js";
import { state, shown } from "./state.js";
import { drawTask } from "./timeline.js";

const SHOWN = 60;
const orders = {
  newest: (a, b) => Date.parse(b.start) + b.duration_ns / 1e6 - (Date.parse(a.start) + a.duration_ns / 1e6),
  saved: (a, b) => b.saved_ns - a.saved_ns,
  slow: (a, b) => b.duration_ns - a.duration_ns,
  wasted: (a, b) => b.wasted - a.wasted || b.runs.length - a.runs.length,
  failed: (a, b) => Date.parse(b.start) - Date.parse(a.start),
};

let selected = null; // the task that is looked at; it stays though it leaves the list
let chosen = false; // by somebody
let list = [];
let looking = false; // at the list, which then stands still
let rows;

const hold = h("div", { cls: "hold" }, "The list waits while you look at it");

export function initTasks() {
  const box = at("task-list");
  rows = h("div", { role: "presentation" });
  put(box, rows);
  at("tasks-order").addEventListener("change", () => drawTasks(true));
  let pointing = false;
  let typing = false;
  const look = () => {
    if (looking === (pointing || typing)) return;
    looking = !looking;
    if (looking) return;
    hold.remove();
    drawTasks(true);
  };
  box.addEventListener("pointerenter", (e) => {
    pointing = e.pointerType === "mouse";
    look();
  });
  box.addEventListener("pointerleave", () => {
    pointing = false;
    look();
  });
  box.addEventListener("blur", () => {
    typing = false;
    look();
  });
  box.addEventListener("keydown", (e) => {
    const i = list.indexOf(selected);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: list.length - 1 }[e.key];
    if (to === undefined || !list.length) return;
    e.preventDefault();
    typing = true;
    look();
    select(list[Math.min(list.length - 1, Math.max(0, to))], true);
  });
}

function select(task, byHand) {
  selected = task;
  chosen = chosen || byHand;
  drawTasks(true);
  drawTask(at("task-view"), task);
  const row = rows.keyed && rows.keyed.get(task.key);
  if (byHand && row) row.scrollIntoView({ block: "nearest" });
}

export function drawTasks(force) {
  const all = shown().flatMap((v) => v.tasks);
  text(at("tasks-count"), all.length ? number(all.length) : "");
  const body = at("tasks").querySelector(".tasks-body");
  body.classList.toggle("none", !all.length);
  if (!all.length) {
    const waiting = !shown().some((v) => v.status) || shown().some((v) => v.status && v.status.tasks > 0);
    if (!body.empty || body.waiting !== waiting) {
      if (body.empty) body.empty.remove();
      body.waiting = waiting;
      body.append((body.empty = noTasks(waiting)));
    }
    at("task-list").hidden = at("task-view").hidden = true;
    return;
  }
  if (body.empty) {
    body.empty.remove();
    body.empty = null;
  }
  at("task-list").hidden = at("task-view").hidden = false;
  if (looking && !force && list.length) {
    if (!hold.parentNode) at("task-list").prepend(hold);
    return;
  }
  const order = at("tasks-order").value;
  const fits = order === "failed" ? all.filter((t) => t.outcome !== "confirmed") : all;
  if (!looking || !force || !list.length || list.order !== order) {
    list = [...fits].sort(orders[order]).slice(0, SHOWN);
    list.order = order;
  }
  keyed(rows, list, (t) => t.key, makeRow, updateRow);
  const active = selected && rows.keyed.get(selected.key); // which may have left the list
  attr(at("task-list"), "aria-activedescendant", active ? active.id : null);
  if (!selected || !state.services.has(selected.service.id) || (state.selected !== "all" && selected.service.id !== state.selected)) chosen = false;
  if (!chosen) pick(all);
}

// pick shows a task that has something to show, as long as nobody chose one.
function pick(all) {
  const worth = (t) => (t.outcome === "confirmed" ? 1 : 0) + (t.runs.length > 1 ? 2 : 0) + (t.runs.some((r) => (r.steps || []).some((s) => s.adopted)) ? 2 : 0) + (t.calls.some((c) => (c.held || []).length) ? 1 : 0) + (t.wasted ? 1 : 0);
  const best = [...all].sort((a, b) => worth(b) - worth(a) || orders.newest(a, b))[0];
  if (!all.includes(selected) || worth(best) > worth(selected)) select(best, false);
}

function noTasks(waiting) {
  if (waiting) return h("div", { cls: "empty" }, h("strong", null, "Waiting for the first task"));
  return h("div", { cls: "empty" }, h("strong", null, "No task kept yet"),
    "A task is a piece of code in foresay.Do, in a context of the Control that this page shows. Some of the tasks that end are kept: ControlConfig.Recent and RecentEvery say how many.");
}

function makeRow(task) {
  const saved = task.saved_ns;
  const gain = Math.abs(saved) < Math.max(0.1e6, 0.005 * task.duration_ns) ? "" : saved > 0 ? `saved ${nanos(saved)}` : `lost ${nanos(-saved)}`;
  const what = [plural(task.runs.length, "run"), task.wasted ? `${number(task.wasted)} in vain` : "", state.services.size > 1 ? task.service.info.name : ""].filter(Boolean).join(" · ");
  const row = h("div", { cls: "task", role: "option", id: "task-" + ++makeRow.count },
    h("div", { cls: "name" }, task.task || "unnamed task"), h("div", { cls: "took" }, nanos(task.duration_ns)),
    h("div", { cls: "sub" }, task.outcome === "confirmed" ? `${clock(task.start)} · ${what}` : h("span", { cls: "fail" }, task.outcome)),
    h("div", { cls: "sub " + (saved > 0 ? "gain" : "loss") }, gain));
  row.addEventListener("click", () => select(task, true));
  return row;
}
makeRow.count = 0;

function updateRow(row, task) {
  attr(row, "aria-selected", task === selected ? "true" : "false");
}
