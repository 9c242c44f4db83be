// What is known of the services, and what can be reckoned from it.

const TASKS = 200;
const POINTS = 300;
const WINDOW = 20; // seconds over which rates fade

export const state = {
  services: new Map(), // by id
  selected: "all",
  lost: 0, // since when there is no connection; 0: there is one
};

export function serviceOf(id) {
  let v = state.services.get(id);
  if (!v) {
    v = { id, info: { id, base: "", name: "", up: true, switch: false, report: false }, status: null, report: null, points: [], tasks: [], known: new Set(), sites: new Map() };
    state.services.set(id, v);
  }
  return v;
}

export function setServices(list) {
  const ids = new Set(list.map((i) => i.id));
  for (const id of state.services.keys()) if (!ids.has(id)) state.services.delete(id);
  for (const info of list) serviceOf(info.id).info = info;
  if (state.selected !== "all" && !ids.has(state.selected)) state.selected = "all";
}

// shown are the services that the page is about.
export function shown() {
  const all = [...state.services.values()];
  return state.selected === "all" ? all : all.filter((v) => v.id === state.selected);
}

export function setStatus(v, status) {
  status.sites = status.sites || [];
  const now = Date.parse(status.at);
  const dt = v.status ? (now - Date.parse(v.status.at)) / 1000 : 0;
  const sites = new Map();
  for (const site of status.sites) {
    let key = v.id + " " + site.name + " " + (site.conn || "");
    while (sites.has(key)) key += "+";
    site.key = key;
    site.service = v;
    sites.set(key, rated(v.sites.get(key), site, dt));
  }
  v.sites = sites;
  v.status = status;
  v.arrived = performance.now();
}

// rated lets a site's rates fade and adds what is new.
function rated(r, site, dt) {
  const c = site.stats;
  const now = {
    calls: c.calls + c.plain, saved: c.saved_ns / 1e6, wasted: c.wasted, wastedMs: c.wasted_ns / 1e6,
    right: c.right, wrong: c.wrong, wouldRight: c.would_be_right, wouldWrong: c.would_be_wrong,
  };
  if (!r || !(dt > 0)) return r || { seen: now, fade: zero(now), seconds: 0, trend: [] };
  const keep = Math.exp(-dt / WINDOW);
  r.seconds = r.seconds * keep + dt;
  for (const k in now) {
    r.fade[k] = r.fade[k] * keep + Math.max(0, now[k] - r.seen[k]);
  }
  r.seen = now;
  return r;
}

const zero = (like) => Object.fromEntries(Object.keys(like).map((k) => [k, 0]));

export const rates = (site) => site.service.sites.get(site.key);

// per returns how much of something there is in a second.
export const per = (r, what) => (r && r.seconds > 0 ? r.fade[what] / r.seconds : NaN);

const NONE = "no predictions", FEW = "too few to judge", COMPARED = "if it were used";

// judged returns the share of a site's predictions that were right lately, of how
// many, and what there is to say of them: why is empty if they are judged by the
// site's break-even rate, as the report does it.
export function judged(site) {
  if (site.conclusive) return { rate: site.judged > 0 ? site.hit_rate : NaN, n: site.judged, why: "" };
  const used = site.mode === "on" || site.mode === "canary";
  if (used && site.judged >= 1) return { rate: site.hit_rate, n: site.judged, why: FEW };
  const r = rates(site);
  const n = r ? r.fade.wouldRight + r.fade.wouldWrong : 0;
  if (n >= 0.5) return { rate: r.fade.wouldRight / n, n, why: COMPARED };
  const c = site.stats;
  const ever = c.would_be_right + c.would_be_wrong;
  return ever > 0 ? { rate: c.would_be_right / ever, n: ever, why: COMPARED } : { rate: NaN, n: 0, why: NONE };
}

export function addPoints(v, points) {
  const last = v.points.length ? v.points[v.points.length - 1].t : 0;
  for (const p of points) {
    if (p.t <= last) continue;
    v.points.push(p);
    for (const site of p.sites || []) {
      const key = v.id + " " + site.n + " " + (site.c || "");
      let list = (v.trends ||= new Map()).get(key);
      if (!list) v.trends.set(key, (list = []));
      list.push({ t: p.t, rate: site.r / (site.r + site.w) });
      while (list.length && list[0].t < p.t - 600e3) list.shift();
    }
  }
  if (v.points.length > POINTS) v.points.splice(0, v.points.length - POINTS);
}

export const trend = (site) => (site.service.trends && site.service.trends.get(site.key)) || [];

// points returns those of the shown services, added up.
export function points() {
  const views = shown();
  if (views.length === 1) return views[0].points;
  const sum = new Map();
  for (const v of views) {
    for (const p of v.points) {
      const t = Math.round(p.t / 2000) * 2000;
      const to = sum.get(t);
      if (!to) sum.set(t, { ...p, t });
      else {
        for (const k of ["calls", "right", "wrong", "would_right", "would_wrong", "saved_ms", "wasted", "wasted_ms"]) to[k] += p[k];
        to.s = Math.max(to.s, p.s);
      }
    }
  }
  return [...sum.values()].sort((a, b) => a.t - b.t).slice(-POINTS);
}

export function addTask(v, task) {
  const key = v.id + " " + task.start + " " + task.task + " " + task.duration_ns;
  if (v.known.has(key)) return;
  task.key = key;
  task.service = v;
  task.runs ||= [];
  task.calls ||= [];
  v.known.add(key);
  v.tasks.push(task);
  if (v.tasks.length > TASKS) v.known.delete(v.tasks.shift().key);
}

// totals adds the shown services up.
export function totals() {
  const t = { sites: 0, states: {}, runs: 0, killed: 0, live: 0, extra: 0, budget: NaN, right: 0, wrong: 0, would: 0, wouldWrong: 0, saved: recentlySaved() };
  for (const v of shown()) {
    if (!v.status) continue;
    t.live++;
    t.runs += v.status.runs;
    t.killed += v.status.killed ? 1 : 0;
    // Of several services the one that is nearest to its budget is shown.
    const b = v.status.budget;
    if (Number.isNaN(t.budget) || used(v.status.extra_load, b) > used(t.extra, t.budget)) [t.extra, t.budget] = [v.status.extra_load, b];
    for (const site of v.status.sites) {
      t.sites++;
      t.states[site.state] = (t.states[site.state] || 0) + 1;
      const r = rates(site);
      t.right += site.judged * site.hit_rate;
      t.wrong += site.judged * (1 - site.hit_rate);
      t.would += r.fade.wouldRight;
      t.wouldWrong += r.fade.wouldWrong;
    }
  }
  return t;
}

// recentlySaved returns how many milliseconds of waiting a second spared lately.
function recentlySaved() {
  let ms = 0;
  let seconds = 0;
  for (const p of points().slice(-5)) {
    ms += p.saved_ms;
    seconds += p.s;
  }
  return seconds > 0 ? ms / seconds : NaN;
}

const used = (extra, budget) => (budget > 0 ? extra / budget : extra);
