// Dark or light: as the system has it, until somebody chooses.

const KEY = "foresay-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden
  }
}

export function initTheme(button, s, put) {
  let chosen = stored();
  const show = () => {
    const theme = chosen || (dark.matches ? "dark" : "light");
    if (chosen) document.documentElement.dataset.theme = chosen;
    const sun = [s("circle", { cx: 12, cy: 12, r: 4.2 }), ...Array.from({ length: 8 }, (_, i) => s("path", { d: "M12 2.6v2.2", transform: `rotate(${45 * i} 12 12)` }))];
    const moon = [s("path", { d: "M20 14.2A8.3 8.3 0 0 1 9.8 4a8.3 8.3 0 1 0 10.2 10.2z" })];
    put(button, s("svg", { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": 1.9, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" }, theme === "dark" ? sun : moon));
    const label = theme === "dark" ? "Switch to light" : "Switch to dark";
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  button.addEventListener("click", () => {
    chosen = (chosen || (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // It holds for this page then.
    }
    show();
  });
  dark.addEventListener("change", show);
  show();
}
