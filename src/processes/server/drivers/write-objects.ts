// Creates a driver's CSIDriver and StorageClass, and updates them at later starts if its capabilities have changed. An annotation
// records the derived content: an object that differs from this content was changed by a user and is not updated. A deleted class
// is not recreated while the derived CSIDriver exists.
import type { Stored } from '../../../api/kind.ts'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import type { CSIDriver } from '../../../api/kinds/csi-driver/csi-driver-schema.ts'
import { findDefaultClass, isMarkedDefault } from '../../../api/kinds/storage-class/default-class.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { type Client, find } from '../../../client/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import { IS_DEFAULT, isBuiltInClass } from '../initial-objects.ts'
import { type DerivedClass, type DerivedDriverSpec, deriveObjects } from './derive-objects.ts'

/** The stored objects of a driver. */
export interface DriverObjects {
  readonly csiDriver: Readonly<CSIDriver>
  /** The derived class, or another class of the driver. Undefined if there is none. */
  readonly storageClass: Readonly<StorageClass> | undefined
  readonly isDefaultClass: boolean
  /** Notes for the user, such as why an object differs from the capabilities. */
  readonly notes: readonly string[]
}

export interface WriteObjectsOptions {
  readonly facts: DriverFacts
  /** Whether a new class becomes the default class, unless a user has chosen another one. */
  readonly becomesDefault: boolean
  readonly client: Client
}

/** The annotation with the derived content, as JSON. */
export const DERIVED_ANNOTATION = 'stowage.dev/derived'

export async function writeDriverObjects(options: WriteObjectsOptions): Promise<DriverObjects> {
  const { facts, client } = options
  const derived = deriveObjects(facts)
  const existingDriver = await find(client, csiDriverKind, { name: facts.name })
  const { items: classes } = await client.list(storageClassKind)
  // Write the class first: after a crash between the two writes, the missing CSIDriver shows that no user deleted the class.
  const classNote = await writeClass({ ...options, derivedClass: derived.storageClass, existingDriver, classes })
  const driverNote = await writeDriver({ ...options, derivedSpec: derived.csiDriver, existingDriver })
  const { items: currentClasses } = await client.list(storageClassKind)
  const ownClasses = currentClasses.filter(({ provisioner }) => provisioner === facts.name)
  const storageClass = ownClasses.find(({ metadata }) => metadata.name === facts.name) ?? ownClasses[0]
  return {
    csiDriver: await client.get(csiDriverKind, { name: facts.name }),
    storageClass,
    isDefaultClass:
      storageClass !== undefined && findDefaultClass(currentClasses)?.metadata.name === storageClass.metadata.name,
    notes: [driverNote, classNote].filter((note) => note !== undefined),
  }
}

/** The action that brings a stored object up to date. */
export type ObjectAction =
  | { readonly do: 'create' }
  | { readonly do: 'nothing' }
  /** A field that cannot be changed differs. */
  | { readonly do: 'replace' }
  | { readonly do: 'update' }
  /** A user changed the object, or created it. */
  | { readonly do: 'leave' }

/** Compares an object's content without metadata, the content derived now, and the content derived when it was written. */
export function planObject({
  content,
  recordedContent,
  derivedContent,
  immutableFields,
}: {
  /** Undefined if the object does not exist. */
  readonly content: object | undefined
  /** The value of DERIVED_ANNOTATION. Undefined if the object has none. */
  readonly recordedContent: string | undefined
  readonly derivedContent: object
  readonly immutableFields: readonly string[]
}): ObjectAction {
  if (!content) return { do: 'create' }
  if (toCanonicalJson(content) === toCanonicalJson(derivedContent)) return { do: 'nothing' }
  if (recordedContent !== toCanonicalJson(content)) return { do: 'leave' }
  const isSame = (field: string) =>
    toCanonicalJson({ field: (content as Fields)[field] }) ===
    toCanonicalJson({ field: (derivedContent as Fields)[field] })
  return immutableFields.every(isSame) ? { do: 'update' } : { do: 'replace' }
}

interface WriteDriverOptions extends WriteObjectsOptions {
  readonly derivedSpec: DerivedDriverSpec
  readonly existingDriver: Readonly<Stored<CSIDriver>> | undefined
}

/** Returns a note if the object differs from the capabilities. */
async function writeDriver({ facts, client, derivedSpec, existingDriver }: WriteDriverOptions) {
  const ref = { name: facts.name }
  const action = planObject({
    content: existingDriver?.spec,
    recordedContent: existingDriver?.metadata.annotations?.[DERIVED_ANNOTATION],
    derivedContent: derivedSpec,
    immutableFields: ['attachRequired', 'volumeLifecycleModes'],
  })
  const metadata = { ...ref, annotations: { [DERIVED_ANNOTATION]: toCanonicalJson(derivedSpec) } }
  switch (action.do) {
    case 'nothing':
      return undefined
    case 'leave':
      return `The CSIDriver ${facts.name} was not derived by Stowage, or was changed, and stays as it is.`
    case 'create':
      await client.create(csiDriverKind, { metadata, spec: { ...derivedSpec } })
      return undefined
    case 'update':
      await client.patch(csiDriverKind, ref, { type: 'merge', body: { metadata, spec: derivedSpec } })
      return undefined
    case 'replace': {
      const { items: volumes } = await client.list(persistentVolumeKind)
      if (volumes.some(({ spec }) => spec?.csi?.driver === facts.name))
        return (
          `The CSIDriver ${facts.name} has attachRequired ${existingDriver?.spec.attachRequired}, but the driver's capabilities ` +
          `imply ${derivedSpec.attachRequired}. The CSIDriver stays as it is while volumes of the driver exist: delete the volumes and restart.`
        )
      await client.delete(csiDriverKind, ref, { uid: existingDriver!.metadata.uid })
      await client.create(csiDriverKind, { metadata, spec: { ...derivedSpec } })
      return undefined
    }
  }
}

interface WriteClassOptions extends WriteObjectsOptions {
  readonly derivedClass: DerivedClass | undefined
  readonly existingDriver: Readonly<Stored<CSIDriver>> | undefined
  readonly classes: readonly Readonly<Stored<StorageClass>>[]
}

/** Returns a note if there is no class, if it differs from the capabilities, or if a user's class stays the default class. */
async function writeClass(options: WriteClassOptions): Promise<string | undefined> {
  const { facts, client, derivedClass, existingDriver, classes, becomesDefault } = options
  const { name } = facts
  if (!derivedClass) return 'The driver cannot create volumes (no CREATE_DELETE_VOLUME), so it has no class.'
  const existingClass = classes.find(({ metadata }) => metadata.name === name)
  if (!existingClass) {
    if (classes.some(({ provisioner }) => provisioner === name)) return undefined // a user created a class for the driver
    if (existingDriver?.metadata.annotations?.[DERIVED_ANNOTATION] !== undefined)
      return `The class ${name} was deleted and is not created again. Delete the CSIDriver ${name} to have both created again.`
    return createClass({ name, derivedClass, classes, becomesDefault, client })
  }
  const { metadata, ...content } = existingClass
  const recordedContent = metadata.annotations?.[DERIVED_ANNOTATION]
  const action = planObject({
    content: withoutType(content),
    recordedContent,
    derivedContent: derivedClass,
    immutableFields: ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode'],
  })
  const annotations = { ...metadata.annotations, [DERIVED_ANNOTATION]: toCanonicalJson(derivedClass) }
  switch (action.do) {
    case 'update':
      await client.patch(
        storageClassKind,
        { name },
        { type: 'merge', body: { metadata: { annotations }, ...derivedClass } },
      )
      return undefined
    case 'replace':
      await client.delete(storageClassKind, { name }, { uid: metadata.uid })
      await client.create(storageClassKind, {
        metadata: { name, annotations, ...(metadata.labels ? { labels: metadata.labels } : {}) },
        ...derivedClass,
      })
      return undefined
    case 'leave':
      return `The class ${name} was not derived by Stowage, or was changed, and stays as it is.`
    default:
      return undefined
  }
}

interface CreateClassOptions extends Pick<WriteObjectsOptions, 'client' | 'becomesDefault'> {
  readonly name: string
  readonly derivedClass: DerivedClass
  readonly classes: readonly Readonly<Stored<StorageClass>>[]
}

/** Creates the class. With `becomesDefault`, it becomes the default class, unless a user created the current default class. */
async function createClass({ name, derivedClass, classes, becomesDefault, client }: CreateClassOptions) {
  const defaultClasses = classes.filter(isMarkedDefault)
  const chosenClass = defaultClasses.find((candidate) => !isBuiltInClass(candidate))
  const isDefault = becomesDefault && !chosenClass
  const annotations = {
    ...(isDefault ? { [IS_DEFAULT]: 'true' } : {}),
    [DERIVED_ANNOTATION]: toCanonicalJson(derivedClass),
  }
  await client.create(storageClassKind, { metadata: { name, annotations }, ...derivedClass })
  if (isDefault)
    for (const { metadata } of defaultClasses)
      await client.patch(
        storageClassKind,
        { name: metadata.name },
        { type: 'merge', body: { metadata: { annotations: { [IS_DEFAULT]: 'false' } } } },
      )
  return becomesDefault && chosenClass
    ? `The class ${chosenClass.metadata.name} stays the default class. Claims name the class ${name}.`
    : undefined
}

type Fields = Readonly<Record<string, unknown>>

const withoutType = ({ apiVersion: _apiVersion, kind: _kind, ...content }: Fields): Fields => content

/** Returns JSON with sorted fields, without those that are undefined or an empty array. */
const toCanonicalJson = (content: object): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(content)
        .filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
  )
