/** The folder of the checkout. In its own file, for processes without a test runner. */
import { resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");
