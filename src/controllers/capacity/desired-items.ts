// The desired items: every segment with every WaitForFirstConsumer class of the driver, or optionally every class. The
// product is not kept in memory; a change of a segment or class reports the affected items.
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { type Item, type ItemKey, keyOfItem, partsOfKey } from './items.ts'
import type { Segments } from './segments.ts'

export interface DesiredItems {
  readonly size: number
  get(key: ItemKey): Item | undefined
  hasClass(name: string): boolean
  /** Keys of a segment with all classes, also of a segment that no longer exists. */
  ofSegment(id: string): ItemKey[]
  ofClass(name: string): ItemKey[]
  all(): ItemKey[]
  stop(): void
}

export interface DesiredItemsOptions {
  readonly driverName: string
  readonly classes: Cache<StorageClass>
  readonly segments: Segments
  /** Include classes with immediate binding. */
  readonly immediateBinding: boolean
  /** Called with the items affected when a class or segment appears, disappears or changes. */
  readonly changed: (keys: readonly ItemKey[]) => void
}

export function desiredItems(options: DesiredItemsOptions): DesiredItems {
  const { driverName, segments, immediateBinding, changed } = options
  const classes = new Map<string, Readonly<StorageClass>>()
  const isDesired = ({ provisioner, volumeBindingMode }: Readonly<StorageClass>) =>
    provisioner === driverName && (immediateBinding || volumeBindingMode !== 'Immediate')

  function put(next: Readonly<StorageClass>): void {
    const { name = '' } = next.metadata
    const known = classes.get(name)
    if (!isDesired(next)) {
      drop(next)
      return
    }
    classes.set(name, next)
    if (!known || !isSame(known.parameters, next.parameters)) changed(ofClass(name))
  }

  function drop({ metadata: { name = '' } }: Readonly<StorageClass>): void {
    if (classes.delete(name)) changed(ofClass(name))
  }

  const ofSegment = (id: string) => [...classes.keys()].map((name) => keyOfItem(name, id))
  const ofClass = (name: string) => [...segments.all()].map(({ id }) => keyOfItem(name, id))
  const stops = [
    options.classes.subscribe({ added: put, updated: put, deleted: drop }),
    segments.follow(({ id }) => changed(ofSegment(id))),
  ]
  return {
    get size() {
      return classes.size * segments.size
    },
    get(key) {
      const { className, segmentId } = partsOfKey(key)
      const storageClass = classes.get(className)
      const segment = segments.get(segmentId)
      return storageClass && segment && { key, storageClass, segment }
    },
    hasClass: (name) => classes.has(name),
    ofSegment,
    ofClass,
    all: () => [...segments.all()].flatMap(({ id }) => ofSegment(id)),
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}

const isSame = (a: object = {}, b: object = {}): boolean => JSON.stringify(a) === JSON.stringify(b)
