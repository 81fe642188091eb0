// Credentials for changing a volume's attributes. Looked for, in this order, in references that another provisioner wrote
// on the volume, in its storage class, in the reference for growing it; their values are read now and kept nowhere.

import type { Client } from '../../client/index.ts'
import { type Credentials, readCredentials, type SecretRef } from '../../volumes/credentials.ts'
import { secretRefFor } from '../provisioning/csi/secret-reference.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { StorageClassReader } from './storage-class-reader.ts'

const SECRET_NAME = 'volume.kubernetes.io/controller-modify-secret-name'
const SECRET_NAMESPACE = 'volume.kubernetes.io/controller-modify-secret-namespace'

export interface ModifyCredentialsDeps {
  readonly client: Client
  readonly storageClass: StorageClassReader
}

/** Throws what says which reference could not be read. */
export async function modifyCredentials(
  subject: Subject,
  { client, storageClass }: ModifyCredentialsDeps,
  signal: AbortSignal,
): Promise<Credentials> {
  const ref = writtenOn(subject) ?? (await namedByClass(subject, storageClass, signal)) ?? forGrowing(subject)
  return ref ? readCredentials(client, ref, signal) : {}
}

function writtenOn({ volume }: Subject): SecretRef | undefined {
  const { annotations = {} } = volume.metadata
  const [name, namespace] = [annotations[SECRET_NAME], annotations[SECRET_NAMESPACE]]
  return name && namespace ? { name, namespace } : undefined
}

async function namedByClass({ claim, volume }: Subject, storageClass: StorageClassReader, signal: AbortSignal) {
  const className = volume.spec?.storageClassName
  const found = className ? await storageClass(className, signal) : undefined
  const volumeName = volume.metadata.name ?? ''
  return found && secretRefFor('controller-modify-secret', found.parameters, { volumeName, claim })
}

function forGrowing({ volume }: Subject): SecretRef | undefined {
  const { name, namespace } = volume.spec?.csi?.controllerExpandSecretRef ?? {}
  return name && namespace ? { name, namespace } : undefined
}
