/** Endpoints of language packs: the list, single packs, and their files, named without the language. */
import type { Call, Handler, World } from "./call.ts";
import { ServiceError } from "./errors.ts";
import { dataReply, textReply } from "./reply.ts";
import { integerParameter, PRODUCT_KEY } from "./requests.ts";
import type { LanguagePackPlan } from "./scenario.ts";

export const listPacks: Handler = (call, world) => {
  const packs = installedPacks(call, world);
  const isFiltered = call.url.searchParams.has("major-version");
  const major = integerParameter(call, "major-version", 0, 0);
  return dataReply(packs.filter((pack) => !isFiltered || majorOf(pack) === major).map(describePack));
};

export const showPack: Handler = (call, world) => dataReply(describePack(findPack(call, world)));

export const sendPackFile: Handler = (call, world) => {
  const pack = findPack(call, world);
  const files = Object.entries(pack.files ?? {});
  const found = files.find(([name]) => baseName(name, pack.locale) === call.path["file"]);
  if (found === undefined) throw new ServiceError("noSuchEntity");
  return textReply(200, "application/octet-stream", found[1]);
};

function installedPacks(call: Call, { settings }: World): readonly LanguagePackPlan[] {
  if (call.path["product"] !== PRODUCT_KEY) throw new ServiceError("noSuchEntity");
  return settings.languagePacks;
}

function findPack(call: Call, world: World): LanguagePackPlan {
  const pack = installedPacks(call, world).find((installed) => packId(installed) === call.path["pack"]);
  if (pack === undefined) throw new ServiceError("noSuchEntity");
  return pack;
}

function describePack(pack: LanguagePackPlan): unknown {
  const { displayName, locale, version, lastChangeTimestamp = null } = pack;
  const id = packId(pack);
  const href = `/api/products/${PRODUCT_KEY}/language-packs/${encodeURIComponent(id)}`;
  return { id, displayName, locale, version, lastChangeTimestamp, href };
}

function packId(pack: LanguagePackPlan): string {
  return `${pack.locale}_${majorOf(pack)}`;
}

function majorOf({ version }: LanguagePackPlan): number {
  return Number(version.split(".")[0]);
}

/** `messages_de.properties` and `messages_de-DE.properties` are both requested as `messages.properties`. */
function baseName(installedName: string, locale: string): string {
  const [language = "", country = ""] = locale.split(/[-_]/);
  const dot = installedName.lastIndexOf(".");
  const [stem, extension] =
    dot === -1 ? [installedName, ""] : [installedName.slice(0, dot), installedName.slice(dot)];
  // The longest first.
  const endings = [
    `_${language}_${country}`,
    `_${language}-${country}`,
    `-${language}-${country}`,
    `_${language}`,
  ];
  const ending = endings.find((text) => stem.toLowerCase().endsWith(text.toLowerCase()));
  return stem.slice(0, stem.length - (ending?.length ?? 0)) + extension;
}
