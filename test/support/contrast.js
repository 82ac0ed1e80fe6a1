// Runs inside the page.
// biome-ignore lint/correctness/noUnusedVariables: called by the code that adds it to the page
function leastContrast(selector) {
  const luminance = (colour) => {
    const parts = (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map((part) => Number(part) / 255);
    const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (element) => {
    if (element === null) return "rgb(255, 255, 255)";
    const colour = getComputedStyle(element).backgroundColor;
    return /rgba\(.*, 0\)|transparent/.test(colour) ? groundOf(element.parentElement) : colour;
  };
  const contrasts = [...document.querySelectorAll(selector)].map((element) => {
    const ink = luminance(getComputedStyle(element).color);
    const ground = luminance(groundOf(element));
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  });
  return Math.min(...contrasts);
}
