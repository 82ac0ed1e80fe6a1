/** The folder and the version of this package. */
import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname } from "node:path";

/** The nearest `package.json` above this file, in a checkout as in an installed package. */
const MANIFEST = findPackageJSON(import.meta.url) ?? "package.json";

export const PACKAGE_FOLDER = dirname(MANIFEST);

export function readVersion(): string {
  return readPackage().version;
}

/** How Inlet names itself to services: firewalls drop requests without a name. */
export function defaultUserAgent(): string {
  const { version, homepage } = readPackage();
  return `inlet/${version} (+${homepage})`;
}

let known: Readonly<Record<"version" | "homepage", string>> | undefined;

function readPackage() {
  known ??= JSON.parse(readFileSync(MANIFEST, "utf8")) as NonNullable<typeof known>;
  return known;
}
