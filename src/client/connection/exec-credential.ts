// Credentials from a program that a kubeconfig names (cloud log-ins): run when there are none or they have expired,
// within a bound of time and output. Requests that come meanwhile wait for the one run.
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
/** Renewed this long before the end, so that no request arrives with credentials that just expired. */
const EARLY_MS = 10_000

export function execCredential(config: ExecConfig, { clock, dir }: { clock: Clock; dir: string }) {
  let known: { credentials: Credentials; expiresAtMs: number } | undefined
  let running: Promise<Credentials> | undefined

  async function run(): Promise<Credentials> {
    const { status } = JSON.parse(await output(config, dir))
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status ?? {}
    if (!token && !(cert && key)) throw new Error(`${config.command} printed neither a token nor a certificate`)
    const credentials = { ...(token ? { token } : {}), ...(cert && key ? { cert, key } : {}) }
    const expiresAtMs = expirationTimestamp ? Date.parse(expirationTimestamp) - EARLY_MS : Number.POSITIVE_INFINITY
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
  if (!command) throw new Error('exec in the kubeconfig names no command')
  const program = command.includes('/') ? resolve(dir, command) : command
  const info = { kind: 'ExecCredential', apiVersion, spec: { interactive: false } }
  const environment = {
    ...process.env,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  }
  const limits = { timeout: EXEC_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX, env: environment }
  return new Promise((settle, fail) => {
    // What it printed is not repeated in errors: it may hold the secret.
    const child = execFile(program, [...args], limits, (error, stdout) => {
      if (!error) settle(stdout)
      else fail(new Error(`${command} failed to give credentials (exit ${error.code ?? error.signal ?? 'unknown'})`))
    })
    child.stdin?.end()
  })
}
