// Measures a page from the frame around it. Each finding is a line: its kind, and what is wrong.
const NO_ROOM = 1, TOUCH = 2, CONTRAST = 4.5;
function measure(frame) {
  const page = frame.contentDocument, view = frame.contentWindow, findings = [];
  // What is folded away is measured too.
  for (const folded of page.querySelectorAll("details")) { folded.removeAttribute("name"); folded.open = true; }
  const style = (element) => view.getComputedStyle(element);
  const name = (element) => element.tagName.toLowerCase() + (element.textContent || "").trim().slice(0, 40).replace(/\s+/g, " ").replace(/^/, " ");
  const scrolls = (element) => element !== page.body && /auto|scroll/.test(style(element).overflowX);
  const inScrollBox = (element) => { for (let e = element; e && e !== page.body; e = e.parentElement) if (scrolls(e)) return true; return false; };
  const isShown = (element) => { for (let e = element; e; e = e.parentElement) { const s = style(e); if (s.display === "none" || s.visibility === "hidden" || s.opacity === "0") return false; } return true; };
  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const linear = (colour) => colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const lab = (colour) => {
    const [r, g, b] = linear(colour), curve = (t) => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
    const x = curve((0.4125 * r + 0.3576 * g + 0.1804 * b) / 0.9505), y = curve(0.2127 * r + 0.7152 * g + 0.0722 * b), z = curve((0.0193 * r + 0.1192 * g + 0.9503 * b) / 1.0888);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const width = page.documentElement.clientWidth;
  for (const element of page.body.querySelectorAll("*")) {
    if (element.closest("svg") && element.tagName !== "svg") continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > width + NO_ROOM && !inScrollBox(element) && isShown(element))
      findings.push(`wide: ${name(element)} ends at ${Math.round(box.right)} of ${width}`);
  }
  for (const chart of page.querySelectorAll("svg")) {
    const labels = [...chart.querySelectorAll("text")].filter((text) => text.textContent.trim() && isShown(text));
    labels.forEach((one, nth) => labels.slice(nth + 1).forEach((two) => {
      const a = one.getBoundingClientRect(), b = two.getBoundingClientRect();
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > TOUCH && down > TOUCH) findings.push(`overlap: "${one.textContent}" and "${two.textContent}"`);
    }));
    const edge = chart.getBoundingClientRect();
    for (const label of labels) {
      const box = label.getBoundingClientRect();
      if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1)
        findings.push(`cut: "${label.textContent}" leaves its chart`);
    }
    // Two colours of one chart are at least 25 apart, by the measure of 1976.
    const seen = new Map();
    for (const series of chart.querySelectorAll("g.s:not(.ink)")) {
      const name = series.querySelector("text.name")?.textContent, mark = series.querySelector("path");
      if (!name || !mark) continue;
      const colour = lab(channels(style(mark).stroke));
      for (const [other, its] of seen)
        if (other !== name && Math.hypot(...colour.map((c, nth) => c - its[nth])) < 25) findings.push(`alike: ${other} and ${name}`);
      seen.set(name, colour);
    }
  }
  for (const plots of page.querySelectorAll(".plots")) {
    const room = plots.getBoundingClientRect().width, rows = new Map();
    for (const chart of plots.children) { const box = chart.getBoundingClientRect(), top = Math.round(box.top); rows.set(top, (rows.get(top) || 0) + box.width); }
    for (const used of rows.values()) if (used < 0.9 * room) findings.push(`empty: ${Math.round(used)} of ${Math.round(room)} px`);
  }
  for (const section of page.querySelectorAll("section")) if (!section.querySelector("svg")) findings.push(`missing: no chart in ${section.id}`);
  const light = ([r, g, b]) => linear([r, g, b]).reduce((sum, c, nth) => sum + c * [0.2126, 0.7152, 0.0722][nth], 0);
  const behind = (element) => { for (let e = element; e; e = e.parentElement) { const c = channels(style(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  const seen = new Set();
  for (const element of page.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !isShown(element) || ["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
    const front = channels(element.closest("svg") ? style(element).fill : style(element).color), back = behind(element);
    if (front.length < 3) continue;
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a), ratio = (high + 0.05) / (low + 0.05);
    const text = `contrast: ${ratio.toFixed(1)} of "${element.textContent.trim().slice(0, 40)}"`;
    if (ratio < CONTRAST && !seen.has(text)) { seen.add(text); findings.push(text); }
  }
  for (const element of page.querySelectorAll("[src], link[href]")) findings.push(`fetches: ${name(element)}`);
  return findings;
}
frame.onload = () => { found.textContent = ["begin", frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light", ...measure(frame), "end"].join("\n"); };
