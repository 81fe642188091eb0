// Test fixture: compares the outputs of a command with those in docs/how-to/space.md. SPACE_PAGE=write updates the page.
import { readFile, writeFile } from 'node:fs/promises'
import { expect } from 'vitest'

const PAGE = new URL('../../../docs/how-to/space.md', import.meta.url)

/** Runs the command with the flags of each of its blocks in the page. */
export async function expectPage(command: string, run: (flags: readonly string[]) => Promise<string>): Promise<void> {
  const page = await readFile(PAGE, 'utf8')
  const blocks = [...page.matchAll(new RegExp(`(\`\`\`console\n\\$ stowage ${command} (.*)\n)([\\s\\S]*?)\`\`\``, 'g'))]
  expect(blocks.length).toBeGreaterThan(0)
  let newPage = page
  for (const [block, head, flags] of blocks) {
    const output = await run(flags!.split(' '))
    newPage = newPage.replace(block, () => `${head}${output}\`\`\``)
  }
  if (process.env.SPACE_PAGE === 'write') await writeFile(PAGE, newPage)
  else expect(page).toBe(newPage)
}
