// Credentials from the exec plugin of a kubeconfig. The plugin runs if there are no credentials or they have expired, with
// a limit on time and output. Concurrent requests wait for the same run.
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Credentials } from './connection.ts'

export interface ExecConfig {
  readonly apiVersion?: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

const EXEC_MS_MAX = 60_000
const OUTPUT_BYTES_MAX = 1024 * 1024
/** Credentials are renewed this long before they expire, so that they do not expire on the way to the server. */
const RENEW_EARLY_MS = 10_000

export function execCredential(config: ExecConfig, { clock, dir }: { clock: Clock; dir: string }) {
  let known: { credentials: Credentials; expiresAtMs: number } | undefined
  let running: Promise<Credentials> | undefined

  async function run(): Promise<Credentials> {
    const { status } = JSON.parse(await output(config, dir))
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status ?? {}
    if (!token && !(cert && key)) throw new Error(`${config.command} printed neither a token nor a certificate`)
    // Without undefined keys, because kubeconfig.ts spreads this over the certificate of the user.
    const credentials = { ...(token ? { token } : {}), ...(cert && key ? { cert, key } : {}) }
    const expiresAtMs = expirationTimestamp
      ? Date.parse(expirationTimestamp) - RENEW_EARLY_MS
      : Number.POSITIVE_INFINITY
    known = { credentials, expiresAtMs }
    return credentials
  }

  return {
    async get(): Promise<Credentials> {
      if (known && clock.nowMs() < known.expiresAtMs) return known.credentials
      running ??= run().finally(() => {
        running = undefined
      })
      return running
    },
    forget(): void {
      known = undefined
    },
  }
}

function output({ command, args = [], env = [], apiVersion }: ExecConfig, dir: string): Promise<string> {
  if (!command) throw new Error('exec in the kubeconfig has no command')
  const program = command.includes('/') ? resolve(dir, command) : command
  const info = { kind: 'ExecCredential', apiVersion, spec: { interactive: false } }
  const environment = {
    ...process.env,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  }
  const limits = { timeout: EXEC_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX, env: environment }
  return new Promise((settle, fail) => {
    // The error does not contain the output, which may have a secret.
    const child = execFile(program, [...args], limits, (error, stdout) => {
      if (!error) settle(stdout)
      else fail(new Error(`${command} returned no credentials (exit ${error.code ?? error.signal ?? 'unknown'})`))
    })
    child.stdin?.end()
  })
}
