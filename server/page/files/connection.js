// Calls to the server of the page.

// Kept only in memory, and therefore forgotten with the page.
const tokens = {metrics: "", infer: ""};

export function useTokens(metrics, infer) {
  tokens.metrics = metrics;
  tokens.infer = infer;
}

// The server returned an error.
export class Refused extends Error {
  constructor(status, message, headers) {
    super(message);
    this.status = status;
    this.reason = headers.get("Attendant-Reason");
    this.retryAfter = headers.get("Retry-After");
  }
  get needsToken() { return this.status === 401 || this.status === 403; }
  get sentence() {
    const reason = this.reason ? ` (${this.reason})` : "";
    const wait = this.retryAfter ? ` Try again in ${this.retryAfter} s.` : "";
    return `The server refused: ${this.message.replace(/\.$/, "")}${reason}.${wait}`;
  }
}

// There was no response.
export class Unreachable extends Error {
  needsToken = false;
  sentence = "The server cannot be reached.";
}

function messageIn(text) {
  try {
    const {error} = JSON.parse(text);
    return (error && error.message) || error || text;  // depending on the API of the path
  } catch {
    return text;
  }
}

// Returns the text of the response. With `body`, an object, the call is a POST. `scope` selects the token to send.
export async function ask(path, scope, body) {
  const headers = {};
  if (tokens[scope]) headers.Authorization = `Bearer ${tokens[scope]}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = body === undefined ? {} : {method: "POST", body: JSON.stringify(body)};
  const [answer, text] = await fetch(path, {...options, headers, cache: "no-store", redirect: "error"})
    .then(async begun => [begun, await begun.text()]).catch(() => { throw new Unreachable(); });
  if (!answer.ok) throw new Refused(answer.status, messageIn(text).trim() || answer.statusText, answer.headers);
  return text;
}

export const askForJson = async (path, scope, body) => JSON.parse(await ask(path, scope, body));
