// What is there before anybody acts: namespaces, drivers and classes.
import type { Kind } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { Client } from '../../client/index.ts'
import { ATTRIBUTES_AT_START, ATTRIBUTES_CLASSES, CLASSES, CSI_DRIVERS, NAMESPACES } from './universe.ts'

export async function createFirstObjects(client: Client): Promise<void> {
  const create = (kind: unknown, name: string, more: object) =>
    client.create(kind as Kind, { metadata: { name }, ...more } as never)
  for (const name of NAMESPACES) await create(namespaceKind, name, {})
  for (const [name, spec] of Object.entries(CSI_DRIVERS)) await create(csiDriverKind, name, { spec })
  for (const [name, facts] of Object.entries(CLASSES)) await create(storageClassKind, name, facts)
  for (const name of ATTRIBUTES_AT_START) await create(volumeAttributesClassKind, name, ATTRIBUTES_CLASSES[name]!)
}
