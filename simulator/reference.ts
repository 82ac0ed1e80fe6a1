/** The reference of scenarios, for `simulate --help`, `GET /control` and the documentation. */

export const SCENARIO_REFERENCE = `A scenario is JSON. Every key is optional; defaults are in parentheses.
  seed            makes ids, passwords and generated content reproducible (1)
  apiVersion      the version of the interface ("1.15")
  clientId        the client id that is registered for every address
  tokenSeconds    how long a verification token is valid (86400)
  tokenLimit      { tokens, seconds, retryAfter: true or false }: so many tokens in so
                  many seconds, and 429 for any more (no limit)
  wrongPasswords  { limit, reaction: "delete" or "lock", lockSeconds }: the
                  reaction to wrong passwords (after 5, the transfer is deleted)
  retentionDays   how long expired transfers are listed (30)
  maxPageSize     the largest page of a list (100)
  csv             { delimiter: "," ";" or "\\t", quote: "all" "minimal" or "none",
                  byteOrderMark, charset: "utf-8" "utf-16le" "utf-16be" or
                  "windows-1252", announceCharset, lineEnd, subject: "shown"
                  "empty" or "missing" }: the format of checksums files
  passwordRules   { minimumLengthRequired: 8, digitsRequired: true, … }
  oldPaths        true: the operations zip, eml and checksums are below files/; or a list
                  of those that are
  showsMessage    false: lists do not show whether there is a confidential message
  noPassword      for transfers with password mode NONE: "link" (the link contains the
                  password), "open" (no password is needed) or "withheld" (the link
                  does not contain the password)
  otherFields     "refuse": a request for undocumented fields is an error
  refusedFields   parts of transfers that lists refuse to show, such as
                  ["transfer.recipients"]
  ignoresActive   true: lists of active transfers contain all transfers
  ignoresFileIds  true: a ZIP has all files, whichever are requested
  wholeThreshold  true: a threshold that is not a whole number is answered with 404
  threshold       "number", "int32" or "refused": which thresholds of an EML are not
                  answered with 400 ("number")
  sessionLinks    true: download links contain ";jsessionid=" and the id of a session
  codesPerAddress how many codes an address gets in 15 minutes (no limit)
  languagePacks   [{ locale, displayName, version, lastChangeTimestamp, files }]
  transfers       [transfer, …]
  faults          [fault, …]

A transfer. Only from, to and files are required:
  from, fromName  the sender
  to, cc, bcc     lists of addresses
  subject         the subject of the transfer
  message         the confidential message; without it, there is no EML
  files           [{ name, and one of text, base64, generate: { bytes, seed } }],
                  each also with listChecksum and csvChecksum ("right", "wrong" or
                  "missing"), announcedBytes for a wrong size, and removed: why the
                  service no longer gives it out
  password        (derived from the seed)
  passwordMode    "GENERATED" "MANUAL" or "NONE"
  securityMode    such as "QUICK" ("ONE_TIME_PASSWORD")
  unsupported     "QUICK" or "eID": every request for it is answered with 501
  messageRow      the row of the message in the checksums file: "text" (with the checksum
                  of its text), "eml" (of the EML) or "wrong" (no row)
  trackingId      (derived from seed and time)
  processingSeconds, expiresInSeconds, revokedAfterSeconds   counted from now
  failed          true: it fails after processing
  algorithm       "SHA-256" "SHA-1" "MD5" "SHA-512" or "none"

A fault. Only the key "does" is required. The keys "on", "transfer", "file" and "fromPage"
select requests: a request must match all of those that are given.
  on              an operation: status, client-id, verification, verification-code,
                  verification-token, received, sent, sent-legacy, info, files, file,
                  zip, eml, checksums, password-generate, password-check,
                  password-rules, languages, language, language-file
  transfer        a tracking-id or transfer-id
  file            the name of a file
  fromPage        this page of a list, or a later one
  skip            how many matching requests pass before the fault applies (0)
  times           to how many requests it then applies (1), or "always"
  does            what happens, one of these:
  { kind: "reset", afterBytes }
      resets the connection: before the answer, or after this many bytes of the body
  { kind: "stall", afterBytes, seconds }
      pauses for this many seconds, or forever: before the answer, or after this
      many bytes of the body
  { kind: "drip", bytes, pauseMs }
      sends this many bytes at a time, with pauses
  { kind: "truncate", afterBytes, announce }
      ends the body after this many bytes; with announce: true, the header
      Content-Length still has the size of the whole body
  { kind: "lengthen", bytes }
      appends this many wrong bytes to the body
  { kind: "corrupt", at }
      changes one bit of the byte at this position (0)
  { kind: "error", status, errorCode, errorMessage, retryAfter }
      answers with an error in the format of the service
  { kind: "html", status, late }
      answers with a status (200) and an HTML page, like a proxy; with late: true,
      the service has carried out the request all the same
  { kind: "empty", status, late }
      answers with a status (204) and no body; late is the same as for html
  { kind: "body", text, contentType, status, repeat }
      answers with this text, repeated this many times (1)
  { kind: "alter", path, value }
      replaces the value at a path of the JSON, such as "data.0.trackingId", or
      removes it if there is no value
  { kind: "redirect", to, status }
      answers with a redirect (302) to this URL
  { kind: "range", mode }
      answers a request for a part of a file, by mode: "honour" sends the part,
      "ignore" sends the whole file, "refuse" answers with status 416, "elsewhere"
      sends another part and says so, "lie" sends another part as the requested one
  { kind: "omit", headers }
      leaves out these headers, such as ["etag"]
  { kind: "change-etag" }
      sends another entity tag in each answer
  { kind: "shift", by }
      adds this many entries to the start of the list at each request, so that other
      entries move to later pages; a negative number removes entries
  { kind: "repeat", entries }
      begins each page with this many entries of the page before
  { kind: "endless" }
      sends a list that never ends
  { kind: "encoding", encoding }
      "gzip" compresses the answer, even if the client does not accept that; "br" sends
      the header "Content-Encoding: br", although the answer is not compressed
`;
