// Obtains credentials from the exec plugin of a kubeconfig and caches them until shortly before they expire.
import { type ExecFileException, execFile } from 'node:child_process'
import { resolve as resolvePath } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Credentials } from './connection.ts'

export interface ExecConfig {
  readonly apiVersion?: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

interface ExecCredentialStatus {
  readonly token?: string
  readonly clientCertificateData?: string
  readonly clientKeyData?: string
  readonly expirationTimestamp?: string
}

const EXEC_MS_MAX = 60_000
const OUTPUT_BYTES_MAX = 1024 * 1024
/** Credentials are renewed this long before they expire, so that they are still valid when a request arrives. */
const RENEWAL_BEFORE_MS = 10_000

export function createExecCredentials(config: ExecConfig, { clock, dir }: { clock: Clock; dir: string }) {
  let cachedEntry: { credentials: Credentials; expiresAtMs: number } | undefined
  let renewal: Promise<Credentials> | undefined

  async function renew(): Promise<Credentials> {
    const status = parseStatus(await runPlugin(config, dir))
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status ?? {}
    if (!status) throw new Error(`the exec plugin ${config.command} did not print a valid ExecCredential`)
    if (!token && !(cert && key))
      throw new Error(`the exec plugin ${config.command} printed neither a token nor a certificate with its key`)
    // Absent fields must not be present as undefined: kubeconfig.ts merges the result into the user's certificate.
    const credentials = { ...(token ? { token } : {}), ...(cert && key ? { cert, key } : {}) }
    const expiresAtMs = expirationTimestamp
      ? Date.parse(expirationTimestamp) - RENEWAL_BEFORE_MS
      : Number.POSITIVE_INFINITY
    cachedEntry = { credentials, expiresAtMs }
    return credentials
  }

  return {
    async get(): Promise<Credentials> {
      if (cachedEntry && clock.nowMs() < cachedEntry.expiresAtMs) return cachedEntry.credentials
      renewal ??= renew().finally(() => {
        renewal = undefined
      })
      return renewal
    },
    invalidate(): void {
      cachedEntry = undefined
    },
  }
}

function runPlugin({ command, args = [], env = [], apiVersion }: ExecConfig, dir: string): Promise<string> {
  if (!command) throw new Error('the exec plugin in the kubeconfig has no command')
  const program = command.includes('/') ? resolvePath(dir, command) : command
  const execInfo = { kind: 'ExecCredential', apiVersion, spec: { interactive: false } }
  const environment = {
    ...process.env,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
    KUBERNETES_EXEC_INFO: JSON.stringify(execInfo),
  }
  const options = { timeout: EXEC_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX, env: environment }
  return new Promise((resolve, reject) => {
    const child = execFile(program, [...args], options, (error, stdout) => {
      if (!error) resolve(stdout)
      else reject(new Error(describeFailure(command, error)))
    })
    child.stdin?.end()
  })
}

/** Describes why the plugin failed, without its output, which may contain a secret. */
function describeFailure(command: string, { code, signal, killed }: ExecFileException): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
    return `the exec plugin ${command} printed more than ${OUTPUT_BYTES_MAX} bytes`
  if (typeof code === 'string')
    return `cannot run the exec plugin ${command} (${code}): install it, or correct its command in the kubeconfig`
  if (killed) return `the exec plugin ${command} did not finish within ${EXEC_MS_MAX / 1_000} s`
  const reason = typeof code === 'number' ? `exited with status ${code}` : `was ended by the signal ${signal}`
  return `the exec plugin ${command} ${reason}: run it in a terminal to see its error`
}

/** Returns the status of an ExecCredential, or undefined if the output is not one. */
function parseStatus(output: string): ExecCredentialStatus | undefined {
  try {
    const { status } = JSON.parse(output)
    return typeof status === 'object' && status !== null ? status : undefined
  } catch {
    return undefined // the error of JSON.parse quotes the output, which may contain a secret
  }
}
