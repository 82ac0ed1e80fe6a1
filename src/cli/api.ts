/** `api`: every operation of the service's interface by hand. */
import type { Command } from "commander";
import { addDownloads } from "./api/downloads.ts";
import { addGet } from "./api/get.ts";
import { addIdentity } from "./api/identity.ts";
import { addLanguages } from "./api/languages.ts";
import { addListing } from "./api/listing.ts";
import { addPasswords } from "./api/passwords.ts";
import { addTransfers } from "./api/transfers.ts";
import type { Run } from "./context.ts";

const ENVIRONMENT = `
The service is described by the configuration file, if there is one, and by the environment, which wins over it:
  INLET_CONFIG                        the configuration file; --config wins over it
  INLET_SERVICE__BASEURL              what stands before /api; --base-url wins over it
  INLET_SERVICE__CLIENTID             the client id that is registered with the service
  INLET_SERVICE__VERIFICATION__TOKEN  a token, where the address was verified by mail
  INLET_SERVICE__ACCEPTLANGUAGE       language of the checksums file (default en)
  INLET_SERVICE__FILEIDLIST           how 'api zip' sends several file ids: repeat (default) or comma
  INLET_SERVICE__CA, __CERT, __KEY    PEM files: more authorities to trust; mutual TLS
  INLET_SERVICE__PROXY                a proxy; else HTTPS_PROXY, HTTP_PROXY and NO_PROXY count
  INLET_SERVICE__TIMEOUT              longest silence, such as 30s
  INLET_SERVICE__ALLOWHTTP            true: allow plain http to other machines
  INLET_PASSWORD                      the transfer's password, if no file is named`;

export function define(api: Command, run: Run): void {
  api
    .option("--base-url <url>", "the service's address: what stands before /api")
    .option("--config <file>", "the configuration file (default: /etc/inlet/inlet.yaml, where it exists)")
    .option("--mailbox <name>", "use this mailbox's own service, where the configuration gives it one")
    .option("--json", "print data as JSON")
    .addHelpText("after", ENVIRONMENT);
  addListing(api, run);
  addTransfers(api, run);
  addGet(api, run);
  addDownloads(api, run);
  addPasswords(api, run);
  addLanguages(api, run);
  addIdentity(api, run);
}
