// Creates the initial objects of a cluster, so that the first claim needs no setup. With `stowage up`, a new embedded store gets
// the directory class. A server with nodes or on etcd gets the objects of the local driver, unless its CSIDriver exists.
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { isMarkedDefault } from '../../api/kinds/storage-class/default-class.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import type { InitialObject } from '../../apiserver/index.ts'
import { find } from '../../client/find.ts'
import type { Client } from '../../client/index.ts'
import { DIRECTORY_PROVISIONER } from '../../controllers/provisioning/directory/index.ts'
import { DRIVER_NAME } from '../../driver/names.ts'

export const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class'
const defaultClassMetadata = (isDefault: boolean) => (isDefault ? { annotations: { [IS_DEFAULT]: 'true' } } : {})

/** A class that works without root and without a CSI driver. It is the default class if there are neither nodes nor drivers. */
export const directoryClass = (isDefault: boolean): InitialObject => ({
  kind: storageClassKind,
  object: {
    metadata: { name: 'directory', ...defaultClassMetadata(isDefault) },
    provisioner: DIRECTORY_PROVISIONER,
  } as InitialObject['object'],
})

const LOCAL_DRIVER = {
  metadata: { name: DRIVER_NAME },
  spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true, fsGroupPolicy: 'File' },
}

const localClass = (isDefault: boolean) => ({
  metadata: { name: 'local', ...defaultClassMetadata(isDefault) },
  provisioner: DRIVER_NAME,
  volumeBindingMode: 'WaitForFirstConsumer' as const,
  allowVolumeExpansion: true,
})

/**
 * Creates the class, then the CSIDriver, whose existence shows that both were created. The class becomes the default class unless
 * there is another one or `mayBeDefault` is false, which reserves the default for the class of a driver given with --driver.
 */
export async function createLocalDriverObjects(
  client: Client,
  { mayBeDefault }: { readonly mayBeDefault: boolean },
): Promise<void> {
  if (await find(client, csiDriverKind, { name: DRIVER_NAME })) return
  const { items: classes } = await client.list(storageClassKind)
  const isDefault = mayBeDefault && !classes.some(isMarkedDefault)
  await ignoreExisting(client.create(storageClassKind, localClass(isDefault)))
  await ignoreExisting(client.create(csiDriverKind, LOCAL_DRIVER))
}

/** Whether the class is `local` or `directory`. */
export const isBuiltInClass = ({ metadata, provisioner }: Readonly<StorageClass>): boolean =>
  (metadata.name === 'local' && provisioner === DRIVER_NAME) ||
  (metadata.name === 'directory' && provisioner === DIRECTORY_PROVISIONER)

async function ignoreExisting(creation: Promise<unknown>): Promise<void> {
  try {
    await creation
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}
