from resonance_cli.app import main

main()
