// What is chosen, in the address: behind "#", the section, then "?" and the choices. Who follows such a link sees the same.
let words: () => [string, string][] = () => [];
let waiting: ReturnType<typeof setTimeout> | undefined;

/** Choices come from the address, now and when it changes, and go into it: `write` has those that are not what a page opens with. */
export function remember(write: () => [string, string][], read: (choices: URLSearchParams) => void, redraw: () => void): void {
  words = write;
  const take = () => read(new URLSearchParams(location.hash.split("?")[1] ?? ""));
  take();
  addEventListener("hashchange", () => {
    // A link to a section keeps what is chosen; a whole address replaces it.
    if (!location.hash.includes("?")) return save();
    take();
    redraw();
    toSection();
  });
}

/** What is chosen has changed. Written a little later: browsers refuse many changes a second. */
export function save(): void {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const query = new URLSearchParams(words()).toString();
    const hash = `#${location.hash.slice(1).split("?")[0]}${query ? "?" + query : ""}`;
    if (hash !== (location.hash || "#")) history.replaceState(null, "", hash);
  }, 150);
}

/** Where the address points to; the browser finds only addresses without choices. */
export function toSection(): void {
  const [section, query] = location.hash.slice(1).split("?");
  if (query !== undefined && section) document.getElementById(section)?.scrollIntoView();
}
