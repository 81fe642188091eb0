import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Parameter, type ParameterDeclarations, parameter } from './parameter.ts'
import { readParameters } from './read-parameters.ts'

const read = (declarations: ParameterDeclarations, parameters: Record<string, string>) =>
  readParameters(declarations, parameters, { className: 'fast', provisioner: 'example.com/p' })
const readValue = (declaration: Parameter, text: string) => {
  const result = read({ key: declaration }, { key: text })
  return result.is === 'read' ? result.values.key : result.is
}
const doc = 'd'

describe('readParameters', () => {
  const CASES: [string, Parameter, string, unknown][] = [
    ['text', parameter.text({ doc }), 'x', 'x'],
    ['text', parameter.text({ doc }), '', 'rejected'],
    ['text with a pattern', parameter.text({ doc, pattern: /^a+$/g }), 'aa', 'aa'],
    ['text with a pattern', parameter.text({ doc, pattern: /^a+$/ }), 'ab', 'rejected'],
    ['choice', parameter.choice(['a', 'b'], { doc }), 'b', 'b'],
    ['choice', parameter.choice(['a', 'b'], { doc }), 'B', 'rejected'],
    ['integer', parameter.integer({ doc }), '-7', -7],
    ['integer', parameter.integer({ doc, min: 1, max: 3 }), '3', 3],
    ['integer', parameter.integer({ doc, min: 1, max: 3 }), '4', 'rejected'],
    ['integer', parameter.integer({ doc }), '1.5', 'rejected'],
    ['integer', parameter.integer({ doc }), '9007199254740993', 'rejected'],
    ['integer', parameter.integer({ doc }), '', 'rejected'],
    ['bytes', parameter.bytes({ doc }), '1Ki', 1024n],
    ['bytes', parameter.bytes({ doc }), '-1', 'rejected'],
    ['bytes', parameter.bytes({ doc }), '1 GB', 'rejected'],
    ['flag', parameter.flag({ doc }), 'true', true],
    ['flag', parameter.flag({ doc }), 'yes', 'rejected'],
    ['custom', parameter.custom({ doc, expected: 'x', parse: (text) => (text === 'x' ? 1 : undefined) }), 'x', 1],
    ['custom', parameter.custom({ doc, expected: 'JSON', parse: JSON.parse }), '{', 'rejected'],
  ]
  for (const [kind, declaration, text, expected] of CASES) {
    const expectedText = typeof expected === 'bigint' ? `${expected}n` : JSON.stringify(expected)
    const result = expected === 'rejected' ? 'rejects' : `reads ${expectedText} from`
    it(`PROV-10 ${result} the ${kind} ${JSON.stringify(text)}`, () => {
      expect(readValue(declaration, text)).toEqual(expected)
    })
  }

  it('PROV-10 returns defaults for omitted parameters', () => {
    const declarations = { a: parameter.text({ doc, default: 'x' }), b: parameter.text({ doc }) }
    expect(read(declarations, {})).toEqual({ is: 'read', values: { a: 'x', b: undefined }, secrets: [] })
  })

  it('PROV-10 rejects unknown and invalid parameters, and names the first unknown one', () => {
    const declarations = { tier: parameter.choice(['fast', 'slow'], { doc }), note: parameter.text({ doc }) }
    const name = fc.oneof(fc.constantFrom('tier', 'note', '__proto__', 'constructor', 'toString'), fc.string())
    const value = fc.oneof(fc.constantFrom('fast', 'slow'), fc.string())
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 20 }), (pairs) => {
        const parameters = Object.fromEntries(pairs)
        const unknownNames = Object.keys(parameters).filter((key) => key !== 'tier' && key !== 'note')
        const result = read(declarations, parameters)
        if (unknownNames.length === 0) {
          const isValid =
            (parameters.tier === undefined || ['fast', 'slow'].includes(parameters.tier)) &&
            (parameters.note === undefined || parameters.note !== '')
          expect(result.is).toBe(isValid ? 'read' : 'rejected')
          return
        }
        expect(result.is).toBe('rejected')
        if (result.is !== 'rejected') return
        expect(result.message).toContain('does not support')
        if (unknownNames[0]!.length <= 80) expect(result.message).toContain(JSON.stringify(unknownNames[0]))
        expect(result.message.length).toBeLessThan(2_000)
      }),
    )
  })
})
