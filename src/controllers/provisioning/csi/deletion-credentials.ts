// Reads the credentials for DeleteVolume. The claim and the class may no longer exist. The order is: the credentials of
// this process, the secret that an annotation of the volume names, the secret that the class names.

import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { Client } from '../../../client/index.ts'
import { type Credentials, readCredentials, UnreadableSecretError } from '../../../volumes/credentials.ts'
import { PreparationError } from './preparation-error.ts'
import { resolveSecretRef } from './secret-reference.ts'

const SECRET_NAME = 'volume.kubernetes.io/provisioner-deletion-secret-name'
const SECRET_NAMESPACE = 'volume.kubernetes.io/provisioner-deletion-secret-namespace'

export interface DeletionCredentialsDeps {
  readonly client: Client
  /** Credentials that this process was started with. */
  readonly processCredentials: Credentials | undefined
  classOf(name: string): Readonly<StorageClass> | undefined
}

export interface DeletionCredentials {
  readonly credentials: Credentials
  /** Why there are no credentials, for the message if the driver requires them. */
  readonly missingReason?: string
}

/**
 * Returns no credentials if the Secret is missing, forbidden or invalid, because the driver may not need them. Throws if reading
 * the Secret may succeed later.
 */
export async function readDeletionCredentials(
  volume: Readonly<PersistentVolume>,
  { client, processCredentials, classOf }: DeletionCredentialsDeps,
  signal: AbortSignal,
): Promise<DeletionCredentials> {
  if (processCredentials) return { credentials: processCredentials }
  try {
    const reference = referenceOf(volume, classOf)
    if ('missingReason' in reference) return { credentials: {}, missingReason: reference.missingReason }
    return { credentials: await readCredentials(client, reference, signal) }
  } catch (error) {
    const isPermanent = error instanceof UnreadableSecretError ? !error.isTransient : error instanceof PreparationError
    if (!isPermanent) throw error
    return { credentials: {}, missingReason: (error as Error).message }
  }
}

function referenceOf(
  volume: Readonly<PersistentVolume>,
  classOf: DeletionCredentialsDeps['classOf'],
): { namespace: string; name: string } | { missingReason: string } {
  const { annotations = {}, name: volumeName = '' } = volume.metadata
  const name = annotations[SECRET_NAME]
  const namespace = annotations[SECRET_NAMESPACE]
  if (name !== undefined && namespace !== undefined) {
    if (name && namespace) return { namespace, name }
    return { missingReason: 'the volume is annotated as needing none' }
  }
  const className = volume.spec?.storageClassName ?? ''
  const storageClass = className ? classOf(className) : undefined
  if (!storageClass)
    return { missingReason: className ? `class "${className}" does not exist` : 'the volume has no class' }
  const { claimRef } = volume.spec ?? {}
  if (!claimRef) return { missingReason: 'the volume has no claimRef' }
  const claim = { metadata: { name: claimRef.name, namespace: claimRef.namespace } }
  const reference = resolveSecretRef('provisioner-secret', storageClass.parameters, { volumeName, claim })
  return reference ?? { missingReason: `class "${className}" names no Secret` }
}
