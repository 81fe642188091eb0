// The objects that a system begins with, so that a claim can be made at once. Their owner may change them, or delete them
// for good: they are made when a store is new, and those of the local driver when it first has nodes.
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { ApiError } from '../api/status-error.ts'
import type { FirstObject } from '../apiserver/index.ts'
import type { Client } from '../client/index.ts'
import { DIRECTORY_PROVISIONER } from '../controllers/provisioning/directory/index.ts'
import { DRIVER_NAME } from '../driver/index.ts'

const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class'
const marked = (isDefault: boolean) => (isDefault ? { annotations: { [IS_DEFAULT]: 'true' } } : {})

/** A class that needs neither root nor a driver; the default where there are no nodes. */
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

/** The local driver's object comes last: while it is missing there never were nodes here, also after a crash half way. */
export async function introduceLocalDriver(client: Client): Promise<void> {
  if (await isThere(client)) return
  const { items: classes } = await client.list(storageClassKind)
  const hasDefault = classes.some(isDefaultClass)
  await unlessThere(client.create(storageClassKind, localClass(!hasDefault)))
  await unlessThere(client.create(csiDriverKind, LOCAL_DRIVER))
}

const isDefaultClass = ({ metadata }: Readonly<StorageClass>) => metadata.annotations?.[IS_DEFAULT] === 'true'

const isThere = (client: Client): Promise<boolean> =>
  client.get(csiDriverKind, { name: DRIVER_NAME }).then(
    () => true,
    (error) => {
      if (error instanceof ApiError && error.code === 404) return false
      throw error
    },
  )

async function unlessThere(creating: Promise<unknown>): Promise<void> {
  try {
    await creating
  } catch (error) {
    if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error
  }
}
