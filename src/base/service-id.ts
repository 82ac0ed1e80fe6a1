/** Names a service by its base URL: several can live at one origin, below paths of their own. */
export function serviceIdOf({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, "");
}
