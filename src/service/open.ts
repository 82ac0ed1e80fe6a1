/** Opens the client of one transfer service. */
import type { Bandwidth } from "./bandwidth.ts";
import { createDownloads } from "./downloads.ts";
import {
  checkPassword,
  fetchApiVersions,
  fetchChecksums,
  fetchFiles,
  fetchInformation,
  fetchLanguagePack,
  fetchLanguagePacks,
  fetchPasswordRules,
  fetchServerTime,
  fetchVerification,
  generatePassword,
  mailVerificationCode,
  obtainToken,
  requestClientId,
} from "./endpoints.ts";
import { type HttpOptions, openHttp } from "./http.ts";
import {
  allPages,
  KnownPages,
  LARGEST_PAGE_SIZE,
  pagesThatFit,
  pollLegacy,
  pollTransfers,
} from "./polling.ts";
import type { IdListForm, ServicePort } from "./port.ts";

export interface ServiceOptions extends HttpOptions {
  readonly idListForm: IdListForm;
  /** Shared by the downloads of all services. */
  readonly bandwidth?: Bandwidth | undefined;
}

export function openService(options: ServiceOptions): ServicePort {
  const http = openHttp(options);
  const downloads = createDownloads(http, options.idListForm, options.bandwidth);
  /** By address: the pages of the last complete list. */
  const knownPages = new Map<string, KnownPages>();
  /** By address: the page size that fits, if full pages were too large. */
  const pageSizes = new Map<string, number>();
  return {
    id: http.serviceId,

    pollReceived: (address, query, signal) => pollTransfers(http, "received", address, query, signal),
    async *listReceived(address, query, onRejected, signal, isKnown) {
      const { email } = address;
      const before = knownPages.get(email);
      const known = isKnown === undefined ? undefined : new KnownPages(isKnown, before);
      yield* pagesThatFit(pageSizes.get(email) ?? LARGEST_PAGE_SIZE, (pageSize) => {
        if (pageSize < LARGEST_PAGE_SIZE) pageSizes.set(email, pageSize);
        return allPages(
          (page, onEntries) =>
            pollTransfers(http, "received", address, { ...query, pageSize, page }, signal, {
              known,
              onEntries,
            }),
          onRejected,
          pageSize,
        );
      });
      if (known !== undefined) knownPages.set(email, known);
    },
    pollSent: (address, query, signal) => pollTransfers(http, "sent", address, query, signal),
    pollSentLegacy: (address, query, signal) => pollLegacy(http, address, query, signal),

    information: (access, signal) => fetchInformation(http, access, signal),
    files: (access, signal, onCount) => fetchFiles(http, access, signal, onCount),
    checksums: (access, files, signal) => fetchChecksums(downloads, access, files, signal),
    ...downloads,

    generatePassword: (signal) => generatePassword(http, signal),
    checkPassword: (password, signal) => checkPassword(http, password, signal),
    passwordRules: (signal) => fetchPasswordRules(http, signal),

    languagePacks: (majorVersion, signal) => fetchLanguagePacks(http, majorVersion, signal),
    languagePack: (id, signal) => fetchLanguagePack(http, id, signal),

    verification: (email, token, signal) => fetchVerification(http, email, token, signal),
    mailVerificationCode: (email, signal) => mailVerificationCode(http, email, signal),
    obtainToken: (email, code, signal) => obtainToken(http, email, code, signal),
    requestClientId: (signal) => requestClientId(http, signal),
    apiVersions: (signal) => fetchApiVersions(http, signal),
    serverTime: (signal) => fetchServerTime(http, signal),

    ownAnswers: () => http.ownAnswers,
    clockAheadMs: () => http.clockAheadMs(),
    close: () => http.close(),
  };
}
