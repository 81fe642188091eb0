// Adds a context for the server to the kubeconfig of the user, and removes what it added. The data directory has a
// record of each added context.
import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../../../base/files.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { KubeconfigOptions } from '../../../processes/kubeconfig.ts'
import { chooseKubeconfig, type KubeconfigDocument, updateKubeconfig } from './kubeconfig-file.ts'

/** The file in the data directory that records the added contexts. */
export const CONTEXTS_FILE = 'kubeconfig-contexts.json'

export interface AddedContext {
  /** Path of the kubeconfig. */
  readonly file: string
  /** Name of the context, the cluster and the user. */
  readonly context: string
  /** The context that was the current one before, or ''. */
  readonly previousContext: string
  readonly hasCreatedFile: boolean
  /** Digests of the CA and of the client certificate, by which the entries are recognized. */
  readonly caDigest: string
  readonly certDigest: string
}

export interface MergeOptions {
  readonly dataDir: string
  readonly context: string
  readonly credential: KubeconfigOptions
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** Whether to check the kubeconfig without changing a file. Default: false. */
  readonly isDryRun?: boolean
}

/** Adds or replaces the context and makes it the current one. Throws if entries of another server have the name. */
export async function mergeContext(options: MergeOptions): Promise<AddedContext> {
  const { dataDir, context, credential, env, clock, isDryRun = false } = options
  const file = resolve(await chooseKubeconfig(env))
  const contexts = await readAddedContexts(dataDir)
  const earlierContext = contexts.find((addedContext) => addedContext.file === file && addedContext.context === context)
  const caData = base64(credential.caCert)
  const certData = base64(credential.credential.cert)
  const hasFile = (await stat(file).catch(() => undefined)) !== undefined
  return updateKubeconfig(
    file,
    async (kubeconfig) => {
      if (!earlierContext) requireFreeName(kubeconfig, { file, context, caData })
      const { currentContext } = kubeconfig
      const namespace = kubeconfig.find('context', context)?.namespace
      kubeconfig.set('cluster', context, { server: credential.server, 'certificate-authority-data': caData })
      kubeconfig.set('user', context, {
        'client-certificate-data': certData,
        'client-key-data': base64(credential.credential.key),
      })
      const namespaceField: Record<string, string> = typeof namespace === 'string' ? { namespace } : {}
      kubeconfig.set('context', context, { cluster: context, user: context, ...namespaceField })
      kubeconfig.currentContext = context
      const addedContext: AddedContext = {
        ...{ file, context, caDigest: digestOf(caData), certDigest: digestOf(certData) },
        previousContext: currentContext === context ? (earlierContext?.previousContext ?? '') : currentContext,
        hasCreatedFile: earlierContext?.hasCreatedFile ?? !hasFile,
      }
      // The record is written before the kubeconfig, so that a reset after a crash finds the context.
      const allContexts = earlierContext
        ? contexts.map((otherContext) => (otherContext === earlierContext ? addedContext : otherContext))
        : [...contexts, addedContext]
      if (!isDryRun) await writePrivateFile(join(dataDir, CONTEXTS_FILE), `${JSON.stringify(allContexts)}\n`)
      return addedContext
    },
    { clock, isDryRun },
  )
}

function requireFreeName(
  kubeconfig: KubeconfigDocument,
  { file, context, caData }: { readonly file: string; readonly context: string; readonly caData: string },
): void {
  const kinds = (['cluster', 'user', 'context'] as const).filter((kind) => kubeconfig.find(kind, context))
  const isOwn = kubeconfig.find('cluster', context)?.['certificate-authority-data'] === caData
  if (kinds.length === 0 || isOwn) return
  throw new UsageError(
    `${file} already has the ${kinds.join(' and the ')} ${JSON.stringify(context)} of another server. Choose another name ` +
      `with --context, or remove them: ${kinds.map((kind) => `kubectl config delete-${kind} ${context}`).join('; ')}`,
  )
}

/** Removes the contexts that the record lists. Returns a message for each that cannot be removed. */
export async function removeAddedContexts(dataDir: string, { clock }: { readonly clock: Clock }): Promise<string[]> {
  const problems: string[] = []
  // The last one is removed first, because its previous context may be another added one.
  for (const addedContext of (await readAddedContexts(dataDir)).toReversed()) {
    await removeContext(addedContext, clock).catch((error: Error) =>
      problems.push(
        `The context ${JSON.stringify(addedContext.context)} stays in ${addedContext.file}: ${error.message}`,
      ),
    )
  }
  return problems
}

async function removeContext(addedContext: AddedContext, clock: Clock): Promise<void> {
  const { file, context, previousContext, caDigest, certDigest } = addedContext
  if (!(await stat(file).catch(() => undefined))) return
  const remove = (kubeconfig: KubeconfigDocument) => {
    const hasDigest = (data: unknown, digest: string) => typeof data === 'string' && digestOf(data) === digest
    const cluster = kubeconfig.find('cluster', context)
    const user = kubeconfig.find('user', context)
    const isOwnCluster = hasDigest(cluster?.['certificate-authority-data'], caDigest)
    if (cluster && !isOwnCluster) return // the name belongs to another cluster now
    kubeconfig.remove('cluster', context)
    if (hasDigest(user?.['client-certificate-data'], certDigest)) kubeconfig.remove('user', context)
    if (kubeconfig.find('context', context)?.cluster === context) kubeconfig.remove('context', context)
    if (kubeconfig.currentContext !== context) return
    kubeconfig.currentContext = kubeconfig.find('context', previousContext) ? previousContext : ''
  }
  await updateKubeconfig(file, remove, { clock, removesEmpty: addedContext.hasCreatedFile })
}

/** Returns an empty list if the record is missing or damaged. */
export async function readAddedContexts(dataDir: string): Promise<readonly AddedContext[]> {
  const text = await readTextIfPresent(join(dataDir, CONTEXTS_FILE))
  try {
    const value: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(value) ? (value as AddedContext[]) : []
  } catch {
    return []
  }
}

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64')
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
