// How figures are written. Spaces before units are thin and do not break.

const THIN = "\u202f";

export function number(n, digits) {
  if (!Number.isFinite(n)) return "–";
  if (digits === undefined) {
    const a = Math.abs(n);
    digits = a === 0 || a >= 100 ? 0 : a >= 10 ? 1 : 2;
    if (Number.isInteger(n)) digits = 0;
  }
  return n.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: digits }).replace("-", "\u2212");
}

export const percent = (f, digits = 0) => (Number.isFinite(f) ? number(100 * f, digits) + THIN + "%" : "–");

// load writes a share that is often small.
export const load = (f) => percent(f, f > 0 && f < 0.1 ? 1 : 0);

export function millis(ms) {
  if (!Number.isFinite(ms)) return "–";
  const a = Math.abs(ms);
  if (a >= 10000) return number(ms / 1000, 1) + THIN + "s";
  return number(ms, a >= 100 ? 0 : a >= 10 ? 1 : a >= 0.995 ? 1 : 2) + THIN + "ms";
}

export const nanos = (ns) => millis(ns / 1e6);

export function span(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  if (seconds < 120) return seconds + THIN + "s";
  if (seconds < 7200) return Math.round(seconds / 60) + THIN + "min";
  return Math.round(seconds / 3600) + THIN + "h";
}

export const clock = (t) => new Date(t).toLocaleTimeString("en-GB");

// Of "/pkg.Service/Method": the method, and what is before it. Other names, such as
// "GET /page", are shown as they are.
export function split(site) {
  if (site[0] !== "/") return { method: site || "(no name)", service: "" };
  const i = site.lastIndexOf("/");
  if (i === 0) return { method: site.slice(1) || "(no name)", service: "" };
  return { method: site.slice(i + 1), service: site.slice(1, i) };
}

export function short(site) {
  const { method, service } = split(site);
  return service ? service.slice(service.lastIndexOf(".") + 1) + "/" + method : method;
}

export const plural = (n, what) => number(n) + " " + what + (n === 1 ? "" : "s");
