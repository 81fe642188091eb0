import { describe, expect, it } from 'vitest'
import { readFlags } from './flags.ts'

const read = (line: string) => readFlags(line.split(' ').filter(Boolean), { cores: 2 })

describe('the flags of the simulator', () => {
  it('SYS-14 one seed or plan, or many seeds by number or time', () => {
    expect(read('--seed 7 --shrink')).toMatchObject({ do: 'one', of: { seed: 7 }, shrink: true, all: false })
    expect(read('--plan a.json --all')).toMatchObject({ do: 'one', of: { file: 'a.json' }, all: true })
    expect(read('')).toMatchObject({ do: 'many', until: { minutes: 1 }, from: undefined, workers: 2 })
    expect(read('--minutes 0.5 --from 3')).toMatchObject({ do: 'many', until: { minutes: 0.5 }, from: 3 })
    expect(read('--seeds 5000 --from 1 --twice --workers 4 --operations 300')).toMatchObject({
      do: 'many',
      until: { seeds: 5_000 },
      from: 1,
      isTwice: true,
      workers: 4,
      size: { operations: 300 },
    })
    expect(read('--help --seed 1')).toEqual({ do: 'help' })
  })

  it.each([
    ['--sed 7', "Unknown option '--sed'. `npm run sim -- --help` lists the flags; they come after a lone `--`."],
    ['7', "Unexpected argument '7'. `npm run sim -- --help` lists"],
    ['--seed', "Option '--seed <value>' argument missing. `npm run sim -- --help`"],
    ['--seed x', '--seed takes a whole number from 0 to 4294967295, not "x". For example: --seed 1'],
    ['--seed 1.5', '--seed takes a whole number from 0 to 4294967295, not "1.5".'],
    ['--seed -1', '--seed takes a whole number from 0 to 4294967295, not "-1".'],
    ['--minutes 0', '--minutes takes a number from 0.01 to 10080, not "0".'],
    ['--workers 0', '--workers takes a whole number from 1 to 256, not "0".'],
    ['--seed 1 --plan a', '--seed and --plan do not go together. A run has one plan: leave one of them out.'],
    ['--seeds 1 --minutes 1', '--minutes and --seeds do not go together.'],
    ['--plan a --faults 1', '--plan and --faults do not go together. A saved plan has its steps'],
    ['--seed 1 --from 2', '--from is about many runs, and --seed or --plan ask for one.'],
    ['--shrink', '--shrink is about one run. Say which: --seed N, or --plan FILE.'],
    ['--seed 1 --found it', '--found is a sentence to save, and nothing is saved. Add --save'],
  ])('SYS-14 refuses %s, and says what next', (line, message) => {
    expect(() => read(line)).toThrow(message)
  })
})
