// What the page may change, if the service lets it.

import { h, at, put } from "./dom.js";
import { state, shown } from "./state.js";

let failed = { text: "", until: 0 };

export const failure = () => (performance.now() < failed.until ? failed.text : "");

async function post(service, name, body) {
  try {
    const r = await fetch(service.info.base + name, {
      method: "POST", credentials: "same-origin",
      headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    if (!r.ok) throw new Error((await r.text()).trim() || r.status);
    failed.until = 0;
  } catch (e) {
    failed = { text: `${service.info.name}: could not set the ${name === "kill" ? "kill switch" : "mode"}: ${e.message}`, until: performance.now() + 15000 };
  }
}

export const setMode = (site, mode, share) => post(site.service, "mode", { site: site.name, mode, share });

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
  button.setAttribute("aria-label", label);
  button.title = killed ? "Let calls use predictions again" : "Every call waits for its actual answer until you resume";
  button.onclick = () => {
    const all = may.length > 1 ? ` of all ${may.length} services` : "";
    if (!killed && may.length > 1 && !window.confirm(`Kill the speculation${all}?`)) return;
    for (const v of may) post(v, "kill", { killed: !killed });
  };
}
