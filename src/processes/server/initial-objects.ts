// Objects that are created in a new cluster, so that the first claim needs no setup. The directory class is created in a new
// embedded store. The objects of the local driver are created at a start with nodes or on etcd, unless its CSIDriver exists.
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import type { InitialObject } from '../../apiserver/index.ts'
import { find } from '../../client/find.ts'
import type { Client } from '../../client/index.ts'
import { DIRECTORY_PROVISIONER } from '../../controllers/provisioning/directory/index.ts'
import { DRIVER_NAME } from '../../driver/index.ts'

const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class'
const defaultClassMetadata = (isDefault: boolean) => (isDefault ? { annotations: { [IS_DEFAULT]: 'true' } } : {})

/** A class that needs neither root nor a CSI driver. It is the default class if there are no nodes. */
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

/** Creates the class, then the CSIDriver: its existence marks that both were created. */
export async function createLocalDriverObjects(client: Client): Promise<void> {
  if (await find(client, csiDriverKind, { name: DRIVER_NAME })) return
  const { items: classes } = await client.list(storageClassKind)
  const hasDefault = classes.some(isDefaultClass)
  await ignoreExisting(client.create(storageClassKind, localClass(!hasDefault)))
  await ignoreExisting(client.create(csiDriverKind, LOCAL_DRIVER))
}

const isDefaultClass = ({ metadata }: Readonly<StorageClass>) => metadata.annotations?.[IS_DEFAULT] === 'true'

async function ignoreExisting(creation: Promise<unknown>): Promise<void> {
  try {
    await creation
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}
