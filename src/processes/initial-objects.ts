// Objects created in a new system, so that a first claim works without setup. Users may change or delete them: the directory
// class is created in a new store only, those of the local driver when the system first has nodes.
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { isAlreadyExists } from '../api/status-error.ts'
import type { FirstObject } from '../apiserver/index.ts'
import { find } from '../client/find.ts'
import type { Client } from '../client/index.ts'
import { DIRECTORY_PROVISIONER } from '../controllers/provisioning/directory/index.ts'
import { DRIVER_NAME } from '../driver/index.ts'

const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class'
const marked = (isDefault: boolean) => (isDefault ? { annotations: { [IS_DEFAULT]: 'true' } } : {})

/** A class that needs neither root nor a driver; the default class if there are no nodes. */
export const directoryClass = (isDefault: boolean): FirstObject => ({
  kind: storageClassKind,
  object: {
    metadata: { name: 'directory', ...marked(isDefault) },
    provisioner: DIRECTORY_PROVISIONER,
  } as FirstObject['object'],
})

const LOCAL_DRIVER = {
  metadata: { name: DRIVER_NAME },
  spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true, fsGroupPolicy: 'File' },
}

const localClass = (isDefault: boolean) => ({
  metadata: { name: 'local', ...marked(isDefault) },
  provisioner: DRIVER_NAME,
  volumeBindingMode: 'WaitForFirstConsumer' as const,
  allowVolumeExpansion: true,
})

/** Creates the CSIDriver last: while it is missing, the system never had nodes, even after a crash in between. */
export async function createLocalDriverObjects(client: Client): Promise<void> {
  if (await find(client, csiDriverKind, { name: DRIVER_NAME })) return
  const { items: classes } = await client.list(storageClassKind)
  const hasDefault = classes.some(isDefaultClass)
  await ignoreExisting(client.create(storageClassKind, localClass(!hasDefault)))
  await ignoreExisting(client.create(csiDriverKind, LOCAL_DRIVER))
}

const isDefaultClass = ({ metadata }: Readonly<StorageClass>) => metadata.annotations?.[IS_DEFAULT] === 'true'

async function ignoreExisting(creating: Promise<unknown>): Promise<void> {
  try {
    await creating
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}
