// Reads object names for command line completion.

import type { Kind } from '../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { namespaceKind } from '../../../api/kinds/namespace/namespace.ts'
import { BOOTSTRAP_TOKEN_NAMESPACE, secretNameOf } from '../../../api/kinds/secret/bootstrap-token-secret.ts'
import { secretKind } from '../../../api/kinds/secret/secret.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import type { BulkDeps } from '../../bulk/deps.ts'
import { OBJECT_KINDS } from '../retry/object-kinds.ts'
import type { ObjectNames } from './complete.ts'

/** A shell that waits longer than this would appear to hang. */
const TIMEOUT_MS = 2_000

export function readObjectNames(kubeconfig: string | undefined, deps: BulkDeps): ObjectNames {
  const listNames = async (
    kind: Kind,
    namespaceOf: (configuredNamespace: string) => string | undefined,
  ): Promise<readonly string[]> => {
    let client: (Client & { close(): void }) | undefined
    try {
      const { connection, namespace } = await loadClientConfig(kubeconfig, deps)
      client = httpClient({ connection, clock: deps.clock, userAgent: 'stowage-completion' })
      const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(TIMEOUT_MS)])
      const { items } = await client.list(kind, { namespace: namespaceOf(namespace), signal })
      return items.map(({ metadata }) => metadata.name)
    } catch {
      return [] // completion prints no errors: they would appear in the middle of the line
    } finally {
      client?.close()
    }
  }
  return {
    namespaces: () => listNames(namespaceKind, () => undefined),
    claims: (namespace) =>
      listNames(persistentVolumeClaimKind, (configuredNamespace) => namespace ?? configuredNamespace),
    attributesClasses: () => listNames(volumeAttributesClassKind, () => undefined),
    csiDrivers: () => listNames(csiDriverKind, () => undefined),
    async tokens() {
      const prefix = secretNameOf('')
      const names = await listNames(secretKind, () => BOOTSTRAP_TOKEN_NAMESPACE)
      return names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length))
    },
    async objects(kindName, namespace) {
      const kind = Object.hasOwn(OBJECT_KINDS, kindName) ? OBJECT_KINDS[kindName] : undefined
      if (!kind) return []
      const names = await listNames(kind, (configuredNamespace) =>
        kind.namespaced ? (namespace ?? configuredNamespace) : undefined,
      )
      return names.map((name) => `${kindName}/${name}`)
    },
  }
}
