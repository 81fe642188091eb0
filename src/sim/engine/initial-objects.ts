// Creates the objects that exist before any user acts: namespaces, CSIDrivers, and classes of storage and priority.
import type { Kind } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { priorityClassKind } from '../../api/kinds/priority-class/priority-class.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { Client } from '../../client/index.ts'
import {
  ATTRIBUTES_CLASSES,
  CLASSES,
  CSI_DRIVERS,
  EXTRA_CLASSES,
  INITIAL_ATTRIBUTES_CLASSES,
  LOST_VOLUME_CLASSES,
  NAMESPACES,
  PRIORITY_CLASSES,
} from '../plan/catalog.ts'
import type { Setup } from '../plan/plan.ts'

export async function createInitialObjects(client: Client, { memoryPlugin, nodeStorage }: Setup): Promise<void> {
  const create = (
    kind: unknown,
    name: string,
    { metadata, ...fields }: { readonly metadata?: object; readonly [field: string]: unknown },
  ) => client.create(kind as Kind, { metadata: { name, ...metadata }, ...fields } as never)
  for (const name of NAMESPACES) await create(namespaceKind, name, {})
  for (const [name, spec] of Object.entries(CSI_DRIVERS)) await create(csiDriverKind, name, { spec })
  for (const [name, fields] of Object.entries(CLASSES)) await create(storageClassKind, name, { ...fields })
  if (memoryPlugin)
    for (const [name, fields] of Object.entries(EXTRA_CLASSES)) await create(storageClassKind, name, { ...fields })
  for (const [name, fields] of Object.entries(nodeStorage ? LOST_VOLUME_CLASSES : {}))
    await create(storageClassKind, name, { ...fields })
  for (const [name, fields] of Object.entries(PRIORITY_CLASSES)) await create(priorityClassKind, name, { ...fields })
  for (const name of INITIAL_ATTRIBUTES_CLASSES)
    await create(volumeAttributesClassKind, name, { ...ATTRIBUTES_CLASSES[name]! })
}
