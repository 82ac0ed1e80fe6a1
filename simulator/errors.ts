/** The errors of the simulated service, with the status and error code of the real one. */

interface ErrorMeaning {
  readonly status: number;
  /** Missing for answers of the server below the service, which have no body. */
  readonly errorCode?: number;
  readonly text: string;
}

const SERVICE_ERRORS = {
  parameterMissing: { status: 400, errorCode: 1002, text: "A required parameter is missing" },
  badValue: { status: 400, errorCode: 1004, text: "A parameter has a value that is not allowed" },
  badPath: { status: 400, errorCode: 1005, text: "A path variable is not valid" },
  tokenRefused: { status: 401, errorCode: 3002, text: "The verification is not valid" },
  proofRefused: { status: 403, errorCode: 3002, text: "The verification data is not valid" },
  passwordRefused: { status: 401, errorCode: 3003, text: "The transfer password is wrong" },
  transferLocked: { status: 403, errorCode: 2005, text: "The transfer is locked" },
  policyRefused: { status: 403, errorCode: 3010, text: "The policy does not allow this" },
  noSuchEndpoint: { status: 404, errorCode: 1006, text: "There is no such endpoint" },
  noSuchEntity: { status: 404, errorCode: 2003, text: "There is no such entity" },
  versionNotServed: { status: 404, errorCode: 2004, text: "The API version is not supported" },
  methodNotAllowed: { status: 405, errorCode: 1006, text: "The endpoint does not know this method" },
  notAcceptable: { status: 406, text: "The client does not accept the answer's type" },
  transferDeleted: { status: 410, errorCode: 2006, text: "The transfer has been deleted" },
  bodyTooLarge: { status: 413, errorCode: 1004, text: "The request is too large" },
  wrongType: { status: 415, text: "The body has another type" },
  tooManyRequests: { status: 429, errorCode: 2007, text: "Too many requests" },
  serverFault: { status: 500, errorCode: 5000, text: "The server failed" },
  quickNotSupported: { status: 501, errorCode: 5001, text: "Unsupported operation: QUICK" },
  eidNotSupported: { status: 501, errorCode: 5002, text: "Unsupported operation: eID" },
} as const satisfies Record<string, ErrorMeaning>;

export type ServiceErrorName = keyof typeof SERVICE_ERRORS;

export class ServiceError extends Error {
  override name = "ServiceError";
  readonly status: number;
  readonly errorCode: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  /** The detail goes to the client: it names a parameter, never its value. */
  constructor(error: ServiceErrorName, detail?: string, headers: Readonly<Record<string, string>> = {}) {
    const meaning: ErrorMeaning = SERVICE_ERRORS[error];
    super(detail === undefined ? meaning.text : `${meaning.text}: ${detail}`);
    this.status = meaning.status;
    this.errorCode = meaning.errorCode;
    this.headers = headers;
  }
}

/** A wrong scenario or control request; the message names the key. */
export class ScenarioError extends Error {
  override name = "ScenarioError";
}

/** The error for a fault that sets only the status. */
export function meaningOfStatus(status: number): ErrorMeaning {
  // Several errors have these statuses.
  const preferred: Readonly<Record<number, ServiceErrorName>> = {
    400: "badValue",
    403: "policyRefused",
    404: "noSuchEntity",
  };
  const name = preferred[status];
  if (name !== undefined) return SERVICE_ERRORS[name];
  const meanings: readonly ErrorMeaning[] = Object.values(SERVICE_ERRORS);
  const found = meanings.find((meaning) => meaning.status === status && meaning.errorCode !== undefined);
  return found ?? SERVICE_ERRORS.serverFault;
}
