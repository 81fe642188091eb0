// Computes the desired items: each WaitForFirstConsumer class of the driver (optionally each class) in each segment. A
// change of a segment or class reports the affected items. The items themselves are not kept in memory.
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { type Item, type ItemKey, keyOfItem, parseItemKey } from './items.ts'
import type { Segments } from './segments.ts'

export interface DesiredItems {
  readonly size: number
  get(key: ItemKey): Item | undefined
  hasClass(name: string): boolean
  /** Returns the keys of all classes in the segment, even if the segment no longer exists. */
  keysOfSegment(id: string): ItemKey[]
  keysOfClass(name: string): ItemKey[]
  allKeys(): ItemKey[]
  stop(): void
}

export interface DesiredItemsOptions {
  readonly driverName: string
  readonly classes: Cache<StorageClass>
  readonly segments: Segments
  /** Whether to include classes with immediate binding. */
  readonly immediateBinding: boolean
  /** Called with the affected items when a class or segment is added or removed, or the parameters of a class change. */
  readonly onChange: (keys: readonly ItemKey[]) => void
}

export function createDesiredItems(options: DesiredItemsOptions): DesiredItems {
  const { driverName, segments, immediateBinding, onChange } = options
  const classes = new Map<string, Readonly<StorageClass>>()
  const isDesired = ({ provisioner, volumeBindingMode }: Readonly<StorageClass>) =>
    provisioner === driverName && (immediateBinding || volumeBindingMode !== 'Immediate')

  function update(storageClass: Readonly<StorageClass>): void {
    const { name = '' } = storageClass.metadata
    const previousClass = classes.get(name)
    if (!isDesired(storageClass)) {
      remove(storageClass)
      return
    }
    classes.set(name, storageClass)
    if (!previousClass || !hasSameParameters(previousClass.parameters, storageClass.parameters))
      onChange(keysOfClass(name))
  }

  function remove({ metadata: { name = '' } }: Readonly<StorageClass>): void {
    if (classes.delete(name)) onChange(keysOfClass(name))
  }

  const keysOfSegment = (id: string) => [...classes.keys()].map((name) => keyOfItem(name, id))
  const keysOfClass = (name: string) => [...segments.all()].map(({ id }) => keyOfItem(name, id))
  const stops = [
    options.classes.subscribe({ added: update, updated: update, deleted: remove }),
    segments.follow(({ id }) => onChange(keysOfSegment(id))),
  ]
  return {
    get size() {
      return classes.size * segments.size
    },
    get(key) {
      const { className, segmentId } = parseItemKey(key)
      const storageClass = classes.get(className)
      const segment = segments.get(segmentId)
      return storageClass && segment && { key, storageClass, segment }
    },
    hasClass: (name) => classes.has(name),
    keysOfSegment,
    keysOfClass,
    allKeys: () => [...segments.all()].flatMap(({ id }) => keysOfSegment(id)),
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}

const hasSameParameters = (a: object = {}, b: object = {}): boolean => JSON.stringify(a) === JSON.stringify(b)
