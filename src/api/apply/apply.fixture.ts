// Test support: a small kind with several forms of ownership, arbitrary configurations and field sets of it, and an object
// with managedFields that a test can apply to and update as a named manager.
import fc from 'fast-check'
import { decode } from '../decode.ts'
import { objectMeta } from '../kinds/shared/meta-schema.ts'
import { type DeclaredValue, int32, list, map, object, opt, ptr, req, string } from '../schema.ts'
import { applyConfig } from './apply-config.ts'
import type { FieldSet } from './field-set.ts'
import type { Entry } from './managed-fields.ts'
import { objectShape } from './shape.ts'
import { trackCreate, trackUpdate } from './track-update.ts'
import { allFields, appliedFields } from './value-fields.ts'

const tool = object('test.Tool', '', { id: req(1, int32, ''), grip: opt(2, string, '', { default: 'right' }) })
const part = object('test.Part', '', {
  name: req(1, string, ''),
  weight: opt(2, int32, ''),
  tools: opt(3, list(tool), '', { list: 'map', keys: ['id', 'grip'] }),
})
const joint = object('test.Joint', '', { from: opt(1, string, ''), to: opt(2, string, '') }, { atomic: true })

const machine = object('test.Machine', '', {
  metadata: req(1, objectMeta, ''),
  colour: opt(2, string, ''),
  size: ptr(3, int32, ''),
  labels: opt(4, map(string), ''),
  settings: opt(5, map(string), '', { atomic: true }),
  order: opt(6, list(string), ''),
  tags: opt(7, list(string), '', { list: 'set' }),
  parts: opt(8, list(part), '', { list: 'map', keys: ['name'] }),
  joint: ptr(9, joint, ''),
  looseJoint: ptr(10, joint, '', { atomic: false }),
  engine: ptr(11, object('test.Engine', '', { fuel: opt(1, string, ''), power: opt(2, int32, '') }), ''),
})
export const machineShape = objectShape(machine)

export type Config = Record<string, DeclaredValue>

const anyWord = fc.constantFrom('p', 'q', 'r', 's')
const anyNumber = fc.integer({ min: 1, max: 9 })
/** Generates names that only one of two configurations uses. */
const namesOf = (prefix: string) => fc.constantFrom(`${prefix}1`, `${prefix}2`, `${prefix}3`)

const mapsAndLists = (name: fc.Arbitrary<string>) => ({
  labels: fc.dictionary(name, anyWord, { minKeys: 1, maxKeys: 3 }),
  tags: fc.uniqueArray(name, { minLength: 1, maxLength: 3 }),
  parts: fc.uniqueArray(
    fc.record(
      {
        name,
        weight: anyNumber,
        tools: fc.uniqueArray(fc.record({ id: anyNumber, grip: anyWord }, { requiredKeys: ['id'] }), {
          selector: ({ id }) => id,
          minLength: 1,
          maxLength: 2,
        }),
      },
      { requiredKeys: ['name'] },
    ),
    { selector: ({ name }) => name, minLength: 1, maxLength: 3 },
  ),
})
const fieldsOfFirst = {
  colour: anyWord,
  order: fc.array(anyWord, { minLength: 1, maxLength: 3 }),
  joint: fc.record({ from: anyWord }),
}
const fieldsOfSecond = {
  size: anyNumber,
  settings: fc.dictionary(anyWord, anyWord, { minKeys: 1, maxKeys: 2 }),
  engine: fc.record({ fuel: anyWord, power: anyNumber }, { requiredKeys: ['fuel'] }),
  looseJoint: fc.record({ from: anyWord, to: anyWord }, { requiredKeys: ['to'] }),
}

/** Two configurations without a field in common. */
export const disjointConfigs: fc.Arbitrary<[Config, Config]> = fc.tuple(
  fc.record({ ...fieldsOfFirst, ...mapsAndLists(namesOf('a')) }, { requiredKeys: [] }),
  fc.record({ ...fieldsOfSecond, ...mapsAndLists(namesOf('b')) }, { requiredKeys: [] }),
)
export const anyConfig: fc.Arbitrary<Config> = fc.record(
  { ...fieldsOfFirst, ...fieldsOfSecond, ...mapsAndLists(fc.constantFrom('a1', 'a2', 'b1')) },
  { requiredKeys: [] },
)

export const anySet: fc.Arbitrary<FieldSet> = fc
  .tuple(anyConfig, fc.boolean())
  .map(([config, isWhole]) =>
    isWhole ? { 'f:spec': allFields(machineShape, config) } : appliedFields(machineShape, config),
  )

const complete = (value: object): Config => decode(machine, value).object
const writerOf = (manager: string) => ({ manager, apiVersion: 'v1', subresource: '' })

/** An object with its managedFields. Every write has its own timestamp. */
export class ManagedObject {
  readonly object: Config
  readonly entries: readonly Entry[]
  readonly steps: number

  constructor(object: Config, entries: readonly Entry[] = [], steps = 0) {
    this.object = object
    this.entries = entries
    this.steps = steps
  }

  static createAs(manager: string, object: Config): ManagedObject {
    const completedObject = complete(object)
    const write = { shape: machineShape, writer: writerOf(manager), time: timeOf(0) }
    return new ManagedObject(completedObject, trackCreate(write, completedObject), 1)
  }

  applyAs(manager: string, config: Config, { force = false } = {}): ManagedObject {
    const options = { shape: machineShape, writer: writerOf(manager), time: timeOf(this.steps), force, complete }
    const { object, entries } = applyConfig(options, { live: this.object, config, entries: this.entries })
    return new ManagedObject(object, entries, this.steps + 1)
  }

  updateAs(manager: string, object: Config, subresource = ''): ManagedObject {
    const newObject = complete(object)
    const writer = { ...writerOf(manager), subresource }
    const write = { shape: machineShape, writer, time: timeOf(this.steps) }
    return new ManagedObject(
      newObject,
      trackUpdate(write, this.entries, { before: this.object, after: newObject }),
      this.steps + 1,
    )
  }

  /** The fields that each manager owns: `{'me Update': {f:colour: {}}}`. */
  get owners(): Record<string, unknown> {
    return Object.fromEntries(
      this.entries.map(({ manager, operation, fieldsV1 }) => [`${manager} ${operation}`, fieldsV1]),
    )
  }
}

export const emptyMachine = new ManagedObject(complete({}))

const timeOf = (step: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, step)).toISOString().replace('.000', '')
