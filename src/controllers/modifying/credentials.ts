// Reads the secrets for ControllerModifyVolume. The reference comes from annotations of external-provisioner on the
// volume, from its storage class, or from controllerExpandSecretRef, in this order.
import type { Client } from '../../client/index.ts'
import { type Credentials, readCredentials, type SecretRef } from '../../volumes/credentials.ts'
import { resolveSecretRef } from '../provisioning/csi/secret-reference.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { StorageClassReader } from './storage-class-reader.ts'

const SECRET_NAME = 'volume.kubernetes.io/controller-modify-secret-name'
const SECRET_NAMESPACE = 'volume.kubernetes.io/controller-modify-secret-namespace'

export interface ModifyCredentialsDeps {
  readonly client: Client
  readonly readStorageClass: StorageClassReader
}

/** Throws an error that names the secret if it cannot be read. */
export async function readModifyCredentials(
  subject: Subject,
  { client, readStorageClass }: ModifyCredentialsDeps,
  signal: AbortSignal,
): Promise<Credentials> {
  const ref =
    secretRefOfAnnotations(subject) ??
    (await secretRefOfStorageClass(subject, readStorageClass, signal)) ??
    secretRefOfExpansion(subject)
  return ref ? readCredentials(client, ref, signal) : {}
}

function secretRefOfAnnotations({ volume }: Subject): SecretRef | undefined {
  const { annotations = {} } = volume.metadata
  const [name, namespace] = [annotations[SECRET_NAME], annotations[SECRET_NAMESPACE]]
  return name && namespace ? { name, namespace } : undefined
}

async function secretRefOfStorageClass(
  { claim, volume }: Subject,
  readStorageClass: StorageClassReader,
  signal: AbortSignal,
) {
  const className = volume.spec?.storageClassName
  const loadedClass = className ? await readStorageClass(className, signal) : undefined
  const volumeName = volume.metadata.name
  return loadedClass && resolveSecretRef('controller-modify-secret', loadedClass.parameters, { volumeName, claim })
}

function secretRefOfExpansion({ volume }: Subject): SecretRef | undefined {
  const { name, namespace } = volume.spec?.csi?.controllerExpandSecretRef ?? {}
  return name && namespace ? { name, namespace } : undefined
}
