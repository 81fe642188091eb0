// Test support: a small kind with every kind of ownership (atomic, per key, per item), arbitrary configurations of it,
// and an object with its managedFields that tests apply to and update as a named manager.
import fc from 'fast-check'
import { decode } from '../decode.ts'
import { objectMeta } from '../kinds/shared/meta-schema.ts'
import { type DeclaredValue, int32, list, map, object, opt, ptr, req, string } from '../schema.ts'
import { applyConfig } from './apply-config.ts'
import type { Entry } from './managers.ts'
import { objectShape } from './shape.ts'
import { trackCreate, trackUpdate } from './track-update.ts'

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

const word = fc.constantFrom('p', 'q', 'r', 's')
const number = fc.integer({ min: 1, max: 9 })
/** Names that only one of the two managers uses. */
const namesOf = (side: string) => fc.constantFrom(`${side}1`, `${side}2`, `${side}3`)

const mapsAndLists = (name: fc.Arbitrary<string>) => ({
  labels: fc.dictionary(name, word, { minKeys: 1, maxKeys: 3 }),
  tags: fc.uniqueArray(name, { minLength: 1, maxLength: 3 }),
  parts: fc.uniqueArray(
    fc.record(
      {
        name,
        weight: number,
        tools: fc.uniqueArray(fc.record({ id: number, grip: word }, { requiredKeys: ['id'] }), {
          selector: ({ id }) => id,
          minLength: 1,
          maxLength: 2,
        }),
      },
      { requiredKeys: ['name'] },
    ),
    { selector: (one) => one.name, minLength: 1, maxLength: 3 },
  ),
})
const left = { colour: word, order: fc.array(word, { minLength: 1, maxLength: 3 }), joint: fc.record({ from: word }) }
const right = {
  size: number,
  settings: fc.dictionary(word, word, { minKeys: 1, maxKeys: 2 }),
  engine: fc.record({ fuel: word, power: number }, { requiredKeys: ['fuel'] }),
  looseJoint: fc.record({ from: word, to: word }, { requiredKeys: ['to'] }),
}

/** Two configurations without a field in common. */
export const disjointConfigs: fc.Arbitrary<[Config, Config]> = fc.tuple(
  fc.record({ ...left, ...mapsAndLists(namesOf('a')) }, { requiredKeys: [] }),
  fc.record({ ...right, ...mapsAndLists(namesOf('b')) }, { requiredKeys: [] }),
)
export const anyConfig: fc.Arbitrary<Config> = fc.record(
  { ...left, ...right, ...mapsAndLists(fc.constantFrom('a1', 'a2', 'b1')) },
  { requiredKeys: [] },
)

const complete = (value: object): Config => decode(machine, value).object
const writerOf = (manager: string) => ({ manager, apiVersion: 'v1', subresource: '' })

/** An object with its managedFields. Every write has its own timestamp. */
export class Owned {
  readonly object: Config
  readonly entries: readonly Entry[]
  readonly steps: number

  constructor(object: Config, entries: readonly Entry[] = [], steps = 0) {
    this.object = object
    this.entries = entries
    this.steps = steps
  }

  static createdBy(manager: string, object: Config): Owned {
    const whole = complete(object)
    const write = { shape: machineShape, writer: writerOf(manager), time: timeOf(0) }
    return new Owned(whole, trackCreate(write, whole), 1)
  }

  applyAs(manager: string, config: Config, { force = false } = {}): Owned {
    const options = { shape: machineShape, writer: writerOf(manager), time: timeOf(this.steps), force, complete }
    const { object, entries } = applyConfig(options, { live: this.object, config, entries: this.entries })
    return new Owned(object, entries, this.steps + 1)
  }

  updateAs(manager: string, object: Config, subresource = ''): Owned {
    const after = complete(object)
    const writer = { ...writerOf(manager), subresource }
    const write = { shape: machineShape, writer, time: timeOf(this.steps) }
    return new Owned(after, trackUpdate(write, this.entries, { before: this.object, after }), this.steps + 1)
  }

  /** The fields that each manager owns: `{'me Update': {f:colour: {}}}`. */
  get owners(): Record<string, unknown> {
    return Object.fromEntries(
      this.entries.map(({ manager, operation, fieldsV1 }) => [`${manager} ${operation}`, fieldsV1]),
    )
  }
}

export const nothing = new Owned(complete({}))

const timeOf = (step: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, step)).toISOString().replace('.000', '')
