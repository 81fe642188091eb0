// Prints the kubeconfig of a built-in user, from the credentials in the server's directory.
import { dirname, join } from 'node:path'
import { parseYaml } from '../../../api/yaml-body.ts'
import { loadOrCreatePki } from '../../../apiserver/index.ts'
import type { Clock } from '../../../base/clock.ts'
import { readTextIfPresent } from '../../../base/files.ts'
import { DEFAULT_LISTEN } from '../../../base/listen-address.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { buildKubeconfig, type KubeconfigOptions } from '../../../processes/kubeconfig.ts'
import type { OutputFormat } from '../../output/format-output.ts'

export interface ServerCredentialOptions {
  readonly dataDir: string
  /** Default: in the data directory. */
  readonly pkiDir?: string
  readonly user: 'admin' | 'viewer'
  readonly server: string | undefined
  readonly clock: Clock
}

/** Returns the kubeconfig as YAML, or with the format `json` as JSON. */
export async function printKubeconfig(options: ServerCredentialOptions, format: OutputFormat): Promise<string> {
  const text = buildKubeconfig(await readServerCredential(options))
  return format === 'json' ? `${JSON.stringify((await parseYaml(text)).value)}\n` : text
}

/** Reads the address, the CA and the credential of the user. Throws a UsageError if no server has created them. */
export async function readServerCredential({
  dataDir,
  pkiDir = join(dataDir, 'pki'),
  user,
  server,
  clock,
}: ServerCredentialOptions): Promise<KubeconfigOptions> {
  if ((await readTextIfPresent(join(pkiDir, 'ca.crt'))) === undefined) {
    throw new UsageError(
      `There are no credentials in ${pkiDir}: no server has been started there. Run "stowage up" first, or set --data-dir or --pki-dir.`,
    )
  }
  const pki = await loadOrCreatePki({ dir: pkiDir, clock })
  // The parent of the credentials is usually the data directory of their server.
  const url =
    server ?? (await readLastServer(dirname(pkiDir))) ?? (await readLastServer(dataDir)) ?? `https://${DEFAULT_LISTEN}`
  return { server: url, caCert: pki.caCert, credential: pki[user] }
}

/** Returns the address in the admin kubeconfig that the server wrote at its last start. */
async function readLastServer(dataDir: string): Promise<string | undefined> {
  const text = await readTextIfPresent(join(dataDir, 'admin.kubeconfig'))
  return /^\s*server: "?(https:\/\/[^"\s]+)"?\s*$/m.exec(text ?? '')?.[1]
}
