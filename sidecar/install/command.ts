export async function installCommand(_argv: string[]): Promise<number> { return 1 }
