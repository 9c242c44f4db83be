// Savings and hit rates over time.

import { h, s, at, put, text, attr } from "./dom.js";
import { number, percent, millis, clock } from "./format.js";
import { points } from "./state.js";

const LEFT = 44;
const BOTTOM = 20;
const SMOOTH = 5; // points, ten seconds

// windows sums each point with those just before it, so that few predictions do
// not make the line jump.
function windows(list) {
  const keys = ["s", "right", "wrong", "would_right", "would_wrong", "saved_ms", "wasted_ms", "wasted"];
  return list.map((p, i) => {
    const sum = Object.fromEntries(keys.map((k) => [k, 0]));
    for (let j = i; j >= 0 && j > i - SMOOTH && p.t - list[j].t < 20e3; j--) for (const k of keys) sum[k] += list[j][k];
    return {
      t: p.t, saved: sum.saved_ms / sum.s, wasted: sum.wasted_ms / sum.s, vain: sum.wasted / sum.s,
      hit: sum.right / (sum.right + sum.wrong), would: sum.would_right / (sum.would_right + sum.would_wrong),
    };
  });
}

class Chart {
  constructor(figure, title, unit, keys, label) {
    this.figure = figure;
    this.label = label;
    this.plot = h("div", { cls: "plot" });
    this.tip = h("div", { cls: "tip", hidden: true });
    put(figure, h("figcaption", null, h("h2", null, title, unit ? h("span", { cls: "count" }, unit) : null), h("div", { cls: "key" }, keys.map(([cls, name]) => h("span", null, h("i", { cls }), name)))), this.plot);
    this.list = [];
    this.chosen = -1;
    figure.addEventListener("pointermove", (e) => this.point(e.clientX));
    figure.addEventListener("pointerleave", () => this.choose(-1));
    figure.addEventListener("blur", () => this.choose(-1));
    figure.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!step || !this.list.length) return;
      e.preventDefault();
      const from = this.chosen < 0 ? this.list.length - (step < 0 ? 0 : 1) : this.chosen;
      this.choose(Math.min(this.list.length - 1, Math.max(0, from + step)));
    });
  }

  draw(list) {
    this.list = list;
    const width = this.plot.clientWidth;
    const height = this.plot.clientHeight;
    if (!width) return;
    if (list.length < 2) {
      put(this.plot, h("div", { cls: "none" }, "collecting the first points"));
      return;
    }
    this.end = list[list.length - 1].t;
    this.start = Math.max(this.end - 600e3, Math.min(list[0].t, this.end - 60e3));
    this.x = (t) => LEFT + ((t - this.start) / (this.end - this.start)) * (width - LEFT - 4);
    this.width = width;
    this.height = height;
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    this.times(svg);
    this.content(svg, list);
    this.cross = s("line", { cls: "cross", y1: 0, y2: height - BOTTOM, visibility: "hidden" });
    svg.append(this.cross);
    put(this.plot, svg, this.tip);
    attr(this.figure, "aria-label", this.label(list[list.length - 1]));
    if (this.chosen >= 0) this.choose(Math.min(this.chosen, list.length - 1));
  }

  times(svg) {
    const seconds = (this.end - this.start) / 1000;
    const step = [10, 15, 30, 60, 120].find((n) => seconds / n <= (this.width < 420 ? 4 : 6)) || 300;
    for (let ago = 0; ago <= seconds; ago += step) {
      const x = this.x(this.end - ago * 1000);
      if (x < LEFT + 12 && ago > 0) break;
      const name = ago === 0 ? "now" : ago % 60 === 0 ? `\u2212${ago / 60} min` : `\u2212${ago} s`;
      svg.append(s("text", { cls: "axis", x: Math.min(x, this.width - 2), y: this.height - 4, "text-anchor": ago === 0 ? "end" : "middle" }, name));
    }
  }

  level(svg, y, name, cls = "grid") {
    y = Math.round(y) + 0.5;
    svg.append(s("line", { cls, x1: LEFT, x2: this.width, y1: y, y2: y }), s("text", { cls: "axis", x: LEFT - 7, y: y + 3.5, "text-anchor": "end" }, name));
  }

  // path draws what is a number; gaps stay gaps.
  path(list, value, y) {
    let d = "";
    let open = false;
    for (const p of list) {
      const v = value(p);
      if (Number.isFinite(v)) d += (open ? "L" : "M") + this.x(p.t).toFixed(1) + " " + y(v).toFixed(1);
      open = Number.isFinite(v);
    }
    return d;
  }

  point(clientX) {
    if (!this.x || this.list.length < 2) return;
    const box = this.plot.getBoundingClientRect();
    const t = this.start + ((clientX - box.left - LEFT) / (box.width - LEFT - 4)) * (this.end - this.start);
    let best = 0;
    this.list.forEach((p, i) => {
      if (Math.abs(p.t - t) < Math.abs(this.list[best].t - t)) best = i;
    });
    this.choose(best);
  }

  choose(i) {
    this.chosen = i;
    const p = this.list[i];
    this.tip.hidden = !p;
    if (this.cross) this.cross.setAttribute("visibility", p ? "visible" : "hidden");
    if (!p) return;
    const x = this.x(p.t);
    this.cross.setAttribute("x1", x);
    this.cross.setAttribute("x2", x);
    text(this.tip, clock(p.t) + "\n" + this.label(p));
    const right = x > this.width / 2;
    this.tip.style.left = right ? "" : x + 8 + "px";
    this.tip.style.right = right ? this.width - x + 8 + "px" : "";
  }
}

class Savings extends Chart {
  content(svg, list) {
    const inner = this.height - BOTTOM - 6;
    const up = nice(Math.max(...list.map((p) => p.saved), 0));
    const down = nice(Math.max(...list.map((p) => p.wasted), 0));
    const most = Math.max(up, down, 1e-9);
    // Both directions have one scale.
    const zero = 6 + inner * (up + down > 0 ? up / (up + down) : 1);
    const unit = Math.max((zero - 6) / most, (inner + 6 - zero) / most);
    const y = (v) => zero - v * unit;
    svg.append(s("defs", null, s("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("line", { cls: "hatch", x1: 0, x2: 0, y1: 0, y2: 5 }))));
    for (const v of [up, up / 2]) if (y(v) < zero - 13) this.level(svg, y(v), number(v));
    if (y(-down) > zero + 13) this.level(svg, y(-down), number(down));
    const closed = (d) => d && d + `L${this.x(list[list.length - 1].t).toFixed(1)} ${zero}L${this.x(list[0].t).toFixed(1)} ${zero}Z`;
    const saved = this.path(list, (p) => p.saved, y);
    const wasted = this.path(list, (p) => -p.wasted, y);
    svg.append(s("path", { cls: "area-good", d: closed(saved) }), s("path", { cls: "area-bad", d: closed(wasted) }),
      s("path", { cls: "line-bad", d: wasted }), s("path", { cls: "line-good", d: saved }));
    this.level(svg, zero, "0", "zero");
  }
}

class Hits extends Chart {
  content(svg, list) {
    const y = (v) => 6 + (1 - v) * (this.height - BOTTOM - 6);
    for (const v of [0, 0.5, 1]) this.level(svg, y(v), percent(v), v === 0 ? "zero" : "grid");
    svg.append(s("path", { cls: "line-would", d: this.path(list, (p) => p.would, y) }), s("path", { cls: "line-good", d: this.path(list, (p) => p.hit, y) }));
  }
}

// nice rounds up to one of few steps, so that the scale seldom changes.
function nice(v) {
  if (!(v > 0)) return 0;
  const unit = 10 ** Math.floor(Math.log10(v));
  return unit * [1, 2, 3, 5, 10].find((m) => m * unit >= v * 0.999);
}

let charts;

export function drawCharts() {
  charts ||= [
    new Savings(at("chart-saved"), "Saved and wasted", "ms per second", [["k-good", "waiting spared"], ["k-bad", "wasted calls"]],
      (p) => `${millis(p.saved)} spared per second\n${millis(p.wasted)} wasted per second (${number(p.vain)} calls)`),
    new Hits(at("chart-hits"), "Hit rate", "", [["k-line", "predictions taken"], ["k-would", "only compared"]],
      (p) => `${percent(p.hit)} of those taken\n${percent(p.would)} of those only compared`),
  ];
  const list = windows(points());
  for (const c of charts) c.draw(list);
}
