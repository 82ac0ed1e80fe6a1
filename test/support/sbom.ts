/** The packages in a built program, as its two lists name them. */

/** `NAME VERSION` of each package in the bill of materials. */
export function packagesInSbom(text: string): string[] {
  const { components } = JSON.parse(text) as { components: { name: string; version: string }[] };
  return components.map(({ name, version }) => `${name} ${version}`).toSorted();
}

/** `NAME VERSION` of each package in THIRD-PARTY-LICENSES, which reads them from the packages themselves. */
export function packagesInLicenses(text: string): string[] {
  return [...text.matchAll(/^(\S+ \S+) \(.*\)\n-+$/gm)].map(([, title = ""]) => title).toSorted();
}
