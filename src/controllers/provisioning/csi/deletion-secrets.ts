// Credentials for deleting a volume, whose claim is gone and whose class may be. Never written on the volume by us;
// looked for, in this order, in the provisioner's own, in references that another provisioner wrote, in the class.

import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { Client } from '../../../client/index.ts'
import { type Credentials, readCredentials, UnreadableSecretError } from '../../../volumes/credentials.ts'
import { Refusal } from './refusal.ts'
import { secretRefFor } from './secret-reference.ts'

const SECRET_NAME = 'volume.kubernetes.io/provisioner-deletion-secret-name'
const SECRET_NAMESPACE = 'volume.kubernetes.io/provisioner-deletion-secret-namespace'

export interface DeletionSecretDeps {
  readonly client: Client
  /** Those given to this process. */
  readonly own: Credentials | undefined
  classOf(name: string): Readonly<StorageClass> | undefined
}

export interface DeletionCredentials {
  readonly credentials: Credentials
  /** Why there are none, for the case that the driver asks for some. */
  readonly missing?: string
}

/** Throws a SecretUnreadable only when the server could not be asked; a secret that is gone keeps nothing from going. */
export async function deletionCredentials(
  volume: Readonly<PersistentVolume>,
  { client, own, classOf }: DeletionSecretDeps,
  signal: AbortSignal,
): Promise<DeletionCredentials> {
  if (own) return { credentials: own }
  try {
    const found = referenceOf(volume, classOf)
    if ('missing' in found) return { credentials: {}, missing: found.missing }
    return { credentials: await readCredentials(client, found, signal) }
  } catch (error) {
    const isMissing = error instanceof UnreadableSecretError ? !error.isTransient : error instanceof Refusal
    if (!isMissing) throw error
    return { credentials: {}, missing: (error as Error).message }
  }
}

function referenceOf(
  volume: Readonly<PersistentVolume>,
  classOf: DeletionSecretDeps['classOf'],
): { namespace: string; name: string } | { missing: string } {
  const { annotations = {}, name: volumeName = '' } = volume.metadata
  const name = annotations[SECRET_NAME]
  const namespace = annotations[SECRET_NAMESPACE]
  if (name !== undefined && namespace !== undefined) {
    if (name && namespace) return { namespace, name }
    return { missing: 'the volume says that none is needed' }
  }
  const className = volume.spec?.storageClassName ?? ''
  const storageClass = className ? classOf(className) : undefined
  if (!storageClass) return { missing: className ? `its class "${className}" is gone` : 'the volume has no class' }
  const { claimRef } = volume.spec ?? {}
  if (!claimRef) return { missing: 'the volume no longer says for which claim it was made' }
  const claim = { metadata: { name: claimRef.name, namespace: claimRef.namespace } }
  const ref = secretRefFor('provisioner-secret', storageClass.parameters, { volumeName, claim })
  return ref ?? { missing: `its class "${className}" names none` }
}
