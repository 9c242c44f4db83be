// The page: it listens to the events and draws what changed.

import { h, s, at, put, text } from "./dom.js";
import { clock, span } from "./format.js";
import { state, serviceOf, setServices, setStatus, addPoints, addTask, shown } from "./state.js";
import { drawHeadline } from "./headline.js";
import { drawCharts } from "./charts.js";
import { initSites, drawSites } from "./sites.js";
import { drawReport } from "./report.js";
import { initTasks, drawTasks } from "./tasks.js";
import { drawKill, failure } from "./switches.js";
import { initTheme } from "./theme.js";

const SILENCE = 5000; // milliseconds after which the connection is taken to be lost

let stream;
let heard = performance.now();
const dirty = { services: true, status: true, points: true, tasks: true, report: true };
let scheduled = false;

function changed(...what) {
  for (const w of what) dirty[w] = true;
  if (scheduled || document.hidden) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

let tasksTimer = 0;
let tasksFresh = false; // some came since the list was drawn

function draw() {
  if (dirty.services || dirty.status) {
    drawServices();
    drawKill();
    drawSites();
  }
  if (dirty.status || dirty.services || dirty.report) drawHeadline();
  if (dirty.points) drawCharts();
  if (dirty.report) drawReport();
  if (dirty.tasks && !tasksTimer) {
    // More often than that nobody reads.
    tasksTimer = setTimeout(() => {
      tasksTimer = 0;
      if (tasksFresh) changed("tasks");
    }, 400);
    tasksFresh = false;
    drawTasks();
  } else if (dirty.tasks) tasksFresh = true;
  for (const k in dirty) dirty[k] = false;
}

function all() {
  changed("services", "status", "points", "tasks", "report");
}

function connect() {
  if (stream) stream.close();
  stream = new EventSource("events");
  const on = (kind, take) => stream.addEventListener(kind, (e) => {
    heard = performance.now();
    if (state.lost) found();
    const data = JSON.parse(e.data);
    if (kind === "services") take(data);
    else if (state.services.has(e.lastEventId)) take(data, serviceOf(e.lastEventId));
  });
  on("services", (list) => {
    setServices(list);
    changed("services", "status", "points", "tasks", "report");
  });
  on("status", (d, v) => {
    setStatus(v, d);
    changed("status");
    if (!v.tasks.length) changed("tasks"); // what is said instead depends on it
  });
  on("points", (d, v) => {
    addPoints(v, d);
    changed("points");
  });
  on("task", (d, v) => {
    addTask(v, d);
    changed("tasks");
  });
  on("report", (d, v) => {
    v.report = d;
    changed("report");
  });
  stream.onopen = () => {
    heard = performance.now();
    if (state.lost) found();
    drawLink();
  };
  stream.onerror = () => {
    lost();
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

function lost() {
  if (!state.lost) state.lost = Date.now();
  drawLink();
}

function found() {
  state.lost = 0;
  drawLink();
  all();
}

function drawLink() {
  const link = at("link");
  document.body.classList.toggle("lost-link", !!state.lost);
  link.className = "link" + (state.lost ? " lost" : stream.readyState === EventSource.OPEN ? "" : " waiting");
  text(link, state.lost ? "offline" : stream.readyState === EventSource.OPEN ? "live" : "connecting");
  const banners = [];
  if (state.lost) banners.push(h("p", { cls: "banner bad" }, `Connection lost since ${clock(state.lost)} (${span((Date.now() - state.lost) / 1000)}). These figures are from before; trying again.`));
  else {
    for (const v of shown()) {
      if (!v.info.up) banners.push(h("p", { cls: "banner bad" }, `${v.info.name}${v.info.name === v.info.addr ? "" : ` (${v.info.addr})`} is down${v.info.since ? " since " + clock(v.info.since) : ""}: ${v.info.error}. Trying again.`));
      if (v.info.up && v.status && v.status.killed) banners.push(h("p", { cls: "banner" }, `Speculation of ${v.info.name} is killed: every call waits for its actual answer.`));
      const problems = v.info.up && v.status ? Object.entries(v.status.problems || {}) : [];
      if (problems.length) {
        problems.sort(([a], [b]) => (a < b ? -1 : 1));
        const list = problems.map(([about, problem]) => h("li", null, h("b", null, about + ": "), problem));
        banners.push(h("div", { cls: "banner bad problems" }, `${v.info.name || "This service"} has ${problems.length === 1 ? "a problem" : "problems"}:`, h("ul", null, list)));
      }
    }
  }
  const problem = failure();
  if (problem) banners.push(h("p", { cls: "banner bad" }, problem));
  const key = banners.map((b) => b.textContent).join("\n");
  const box = at("banners");
  if (box.key !== key) {
    box.key = key;
    put(box, banners);
  }
  const latest = shown().map((v) => v.status && v.status.at).filter(Boolean).sort().pop();
  text(at("foot-at"), latest ? "Figures of " + clock(latest) : "");
}

function drawServices() {
  const list = [...state.services.values()];
  const box = at("services");
  const key = JSON.stringify([state.selected, list.map((v) => [v.id, v.info.name, v.info.up])]);
  if (box.key !== key) {
    box.key = key;
    document.title = (list.length === 1 && list[0].info.name ? list[0].info.name + " · " : "") + "Foresay";
    if (list.length < 2) put(box, list.map((v) => h("span", { cls: "name" }, v.info.name)));
    else {
      const chip = (id, name, up) => h("button", {
        type: "button", "aria-pressed": state.selected === id ? "true" : "false",
        onclick: () => {
          state.selected = id;
          all();
        },
      }, up === undefined ? null : h("i", { cls: up ? "dot" : "dot down" }), name, up === false ? h("span", null, "(down)") : null);
      put(box, chip("all", "All services"), list.map((v) => chip(v.id, v.info.name, v.info.up)));
    }
  }
  drawLink();
}

initTheme(at("theme"), s, put);
initSites(() => changed("status"));
initTasks();
connect();
all();
setInterval(() => {
  if (!state.lost && performance.now() - heard > SILENCE) lost();
  if (state.lost && performance.now() - heard > 4 * SILENCE) {
    heard = performance.now();
    connect(); // the browser may not have noticed
  }
  drawLink();
}, 1000);
document.addEventListener("visibilitychange", all);
new ResizeObserver(() => changed("points")).observe(at("main"));
