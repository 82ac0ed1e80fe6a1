/** Reads the configuration file, with what the environment sets in place of it. Never writes. */
import { basename, dirname } from "node:path";
import { Fault } from "../base/faults.ts";
import { digestOf } from "./digest.ts";
import { type ConfigDocument, parseConfigDocument } from "./document.ts";
import { applyOverrides, type Override } from "./environment.ts";
import { loadConf } from "./memory.ts";
import { codeOf, Problems, unreadable } from "./problems.ts";

export interface Reading {
  readonly document: ConfigDocument;
  /** As `digestOf` gives it. */
  readonly digest: string;
  readonly values: Record<string, unknown>;
}

/**
 * `conf` reads. It would also write: defaults that it filled in, or a folder for a file that is missing. So it gets no
 * defaults and only a file that is there, and its way to the disk is shut. The schema is not for it either: to compile it
 * takes longer than all the rest, and whoever explains what is wrong has to do that anyway.
 */
export async function readConfigFile(file: string, overrides: readonly Override[]): Promise<Reading> {
  const Conf = await loadConf();
  let reading: Reading | undefined;
  try {
    new Conf<Record<string, unknown>>({
      cwd: dirname(file),
      configName: basename(file),
      fileExtension: "",
      accessPropertiesByDotNotation: false,
      deserialize: (text) => {
        const document = parseText(file, text);
        reading = { document, digest: digestOf(text), values: applyOverrides(document.values, overrides) };
        return reading.values;
      },
      serialize: () => {
        throw new Error("a configuration is never written");
      },
    });
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw unreadable(file, `cannot be read (${codeOf(error)})`);
  }
  if (reading === undefined) throw unreadable(file, "was taken away while it was being read");
  return reading;
}

function parseText(file: string, text: string): ConfigDocument {
  if (text.includes("\ufffd")) throw unreadable(file, "is not UTF-8 text");
  const document = parseConfigDocument(text);
  const problems = new Problems(() => undefined);
  for (const { line, column, message } of document.errors) {
    problems.add([], message, { name: file, line, column });
  }
  problems.throwIfAny();
  return document;
}
