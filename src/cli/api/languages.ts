/** `api languages`: the language packs of the service and their files. */
import { basename } from "node:path";
import type { Command } from "commander";
import type { LanguagePack } from "../../service/port.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { wholeNumber } from "../numbers.ts";
import { type Column, printJson, printRows } from "../printing.ts";
import { ownName, saveDownload } from "./saving.ts";
import { type ApiOptions, withService } from "./session.ts";

export function addLanguages(api: Command, run: Run): void {
  const languages = api.command("languages").description("list and download language packs");
  const list = languages
    .command("list")
    .description("list the installed language packs")
    .option("--major-version <number>", "only those of this major version", wholeNumber(1, 1_000_000));
  list.action(() => run((context) => showPacks(context, list.optsWithGlobals())));
  const show = languages
    .command("show")
    .description("show one language pack")
    .argument("<id>", "such as en-US_2");
  show.action((id: string) => run((context) => showPack(context, id, show.optsWithGlobals())));
  const get = languages
    .command("get")
    .description("download a file of a language pack")
    .argument("<id>", "such as en-US_2")
    .argument("<path>", "the file's name without its language, such as messages.properties")
    .option("-o, --output <file>", "where to save it (default: its own name, in this folder)");
  get.action((id: string, path: string) =>
    run((context) => getFile(context, id, path, get.optsWithGlobals())),
  );
}

function showPacks(
  context: Context,
  options: ApiOptions & { readonly majorVersion?: number },
): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const packs = await service.languagePacks(options.majorVersion, context.stop);
    printRows(context, options, COLUMNS, packs);
    return "fine";
  });
}

function showPack(context: Context, id: string, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const pack = await service.languagePack(id, context.stop);
    printRows(context, options, COLUMNS, [pack], pack);
    return "fine";
  });
}

function getFile(
  context: Context,
  id: string,
  path: string,
  options: ApiOptions & { readonly output?: string },
): Promise<Outcome> {
  const target = options.output ?? ownName(basename(path));
  return withService(context, options, async ({ service }) => {
    const download = await service.openLanguageFile(id, path, context.stop);
    const saved = await saveDownload(context, download, target, { checksums: [] });
    if (options.json) printJson(context, { path: saved.path, bytes: saved.bytes });
    else context.stdout.write(`${saved.path}\n`);
    return "fine";
  });
}

const COLUMNS: readonly Column<LanguagePack>[] = [
  { title: "ID", value: (pack) => pack.id },
  { title: "LOCALE", value: (pack) => pack.locale },
  { title: "VERSION", value: (pack) => pack.version },
  { title: "CHANGED", value: (pack) => pack.changed?.toISOString() ?? "never" },
  { title: "NAME", value: (pack) => pack.displayName },
  { title: "HREF", value: (pack) => pack.href ?? "" },
];
