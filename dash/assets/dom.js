// Making and changing elements. All text goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(e, props, children) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "style") for (const [name, value] of Object.entries(v)) e.style.setProperty(name, value);
    else if (k === "value") e.value = v;
    else e.setAttribute(k === "cls" ? "class" : k, v === true ? "" : v);
  }
  e.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const at = (id) => document.getElementById(id);

// The following touch the document only where something differs.

export function text(e, value) {
  if (e.textContent !== value) e.textContent = value;
}

export function attr(e, name, value) {
  if (value === null || value === undefined || value === false) {
    if (e.hasAttribute(name)) e.removeAttribute(name);
  } else if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value);
}

export function put(e, ...children) {
  e.replaceChildren(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
}

// keyed makes e's children those of the items, and reuses what it made before.
export function keyed(e, items, key, make, update) {
  const old = e.keyed || new Map();
  const now = new Map();
  let next = e.firstChild;
  for (const item of items) {
    const k = key(item);
    if (now.has(k)) continue;
    let child = old.get(k);
    if (!child) child = make(item);
    now.set(k, child);
    update(child, item);
    if (child === next) next = next.nextSibling;
    else e.insertBefore(child, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
  e.keyed = now;
}
