// What the page may change, if the service lets it. Nothing changes before somebody has read what it will do and agreed,
// and what was changed can be taken back.

import { h, at, put, attr } from "./dom.js";
import { load, percent, short, plural } from "./format.js";
import { state, shown, judged } from "./state.js";

const UNDO = 60000; // milliseconds for which a change can be taken back here

let failed = { text: "", until: 0 };

export const failure = () => (performance.now() < failed.until ? failed.text : "");

// post reports whether it is done.
async function post(service, name, body) {
  try {
    const r = await fetch(service.info.base + name, {
      method: "POST", credentials: "same-origin",
      headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    if (!r.ok) throw new Error((await r.text()).trim() || r.status);
    failed.until = 0;
    return true;
  } catch (e) {
    failed = { text: `${service.info.name}: could not set the ${name === "kill" ? "kill switch" : "mode"}: ${e.message}`, until: performance.now() + 15000 };
    return false;
  }
}

// ask says what a change will do, and resolves to whether it is wanted. The dialog keeps the focus, and gives it back.
function ask(title, lines, yes, danger) {
  const box = at("confirm");
  if (box.open) return Promise.resolve(false);
  put(at("confirm-title"), title);
  put(at("confirm-what"), lines.filter(Boolean).map((l) => h("p", null, l)));
  put(at("confirm-yes"), yes);
  at("confirm-yes").className = "button " + (danger ? "danger" : "primary");
  box.showModal();
  at("confirm-no").focus(); // who presses Enter once too often changes nothing
  return new Promise((resolve) => {
    const end = (wanted) => {
      box.onclose = null;
      if (box.open) box.close();
      resolve(wanted);
    };
    at("confirm-yes").onclick = () => end(true);
    at("confirm-no").onclick = () => end(false);
    box.onclose = () => end(false); // by Escape
  });
}

let clearing = 0;

// done says what was changed, with a way back.
function done(what, undo) {
  clearTimeout(clearing);
  const clear = () => put(at("notice"));
  const button = h("button", { type: "button", cls: "button", onclick: async () => {
    button.disabled = true;
    if (await undo()) put(at("notice"), h("p", { cls: "banner notice" }, "Taken back: " + what));
    else button.disabled = false;
  } }, "Undo");
  put(at("notice"), h("p", { cls: "banner notice" }, what, " ", button));
  clearing = setTimeout(clear, UNDO);
}

export const nameOf = (mode, share) => (mode === "shadow" || mode === "canary" ? `${mode} ${load(share || 0)}` : mode);

// effectOf says what a mode does.
function effectOf(site, mode, share) {
  const budget = site.service.status.budget;
  const upTo = budget >= 0 ? `, up to the budget of ${load(budget)} extra load` : "";
  switch (mode) {
    case "off": return "No predictions are made, and none are compared: every call waits for its answer.";
    case "observe": return "Predictions are compared with the answers, and none is used: nothing is saved, and nothing is sent in vain.";
    case "shadow": return `For ${load(share)} of the requests work is started on predictions and always thrown away: that costs load, and saves nothing.`;
    case "canary": return `${load(share)} of the requests use predictions: right ones save waiting, wrong ones send wasted calls${upTo}. The others only compare.`;
    case "on": return `All requests use predictions: right ones save waiting, wrong ones send wasted calls${upTo}.`;
  }
  return "What was set at run time is taken back: the mode is again what the code or the site file says.";
}

// changeMode sets the mode of a site once somebody has agreed, and resolves to whether it did.
export async function changeMode(site, mode, share) {
  const before = site.origin === "runtime" ? { mode: site.mode, share: site.share || 0 } : { mode: "default", share: 0 };
  const [was, to] = [nameOf(site.mode, site.share), mode === "default" ? "its configured mode" : nameOf(mode, share)];
  const j = judged(site);
  const uses = mode === "on" || mode === "canary";
  const sure = await ask(`Set ${short(site.name)} to ${to}?`, [
    effectOf(site, mode, share),
    uses && Number.isFinite(j.rate) ? `Predictions were right ${percent(j.rate)} of the time lately${j.why ? "" : `; they pay from ${percent(site.break_even)} on`}.` : uses ? "Nothing is known yet of how often its predictions are right." : "",
    `It is ${was} now. The change is in force at once, on all connections of ${site.service.info.name || "the service"}, until it is taken back or the process ends.`,
  ], mode === "default" ? "Take back" : `Set to ${to}`, false);
  if (!sure || !(await post(site.service, "mode", { site: site.name, mode, share }))) return false;
  done(`${short(site.name)} is set to ${to}; it was ${was}.`, () => post(site.service, "mode", { site: site.name, ...before }));
  return true;
}

// drawKill shows the button where the requester may use it.
export function drawKill() {
  const button = at("kill");
  const may = shown().filter((v) => v.info.switch && v.info.up && v.status);
  button.hidden = !may.length || !!state.lost;
  if (!may.length) return;
  const killed = may.every((v) => v.status.killed);
  const verb = killed ? "Resume" : "Kill";
  const label = verb + " speculation";
  button.className = killed ? "button resume" : "button danger";
  if (button.textContent !== label) put(button, verb, h("span", { cls: "wide-only" }, " speculation"));
  attr(button, "aria-label", label);
  button.title = killed ? "Let calls use predictions again" : "Every call waits for its actual answer until you resume";
  button.onclick = async () => {
    const whose = may.length > 1 ? ` of all ${plural(may.length, "service")}` : may[0].info.name ? ` of ${may[0].info.name}` : "";
    const sure = await ask(`${label}${whose}?`, [
      killed ? "Calls use predictions again, as their sites' modes say." : "No prediction is used from now on: every call waits for its actual answer. Tasks that have begun end as they began; nothing is lost.",
      "It is in force at once, until it is taken back or the process ends.",
    ], label, !killed);
    if (!sure) return;
    const all = (to) => Promise.all(may.map((v) => post(v, "kill", { killed: to }))).then((r) => r.every(Boolean));
    if (await all(!killed)) done(killed ? `Speculation${whose} may run again.` : `Speculation${whose} is killed.`, () => all(killed));
  };
}
