# The command. Every .c file of tools/ belongs to it; it sees the public headers only. Manual pages and completions are
# printed by the command itself, from the tables that its --help comes from.

TOOL_SRC := $(sort $(wildcard tools/*.c))
TOOL_OBJ := $(TOOL_SRC:%.c=$(BUILD)/%.o)
TOOL := $(BUILD)/shardpack
TOOL_COMMANDS := $(filter-out help,$(sort $(shell sed -n 's/^extern const command cmd_\([a-z_]*\);/\1/p' tools/cmd.h)))
TOOL_MAN := $(BUILD)/man/shardpack.1 $(TOOL_COMMANDS:%=$(BUILD)/man/shardpack-%.1)
TOOL_COMPLETIONS := $(addprefix $(BUILD)/completions/shardpack.,bash zsh fish)

bashcompdir ?= $(datadir)/bash-completion/completions
zshcompdir ?= $(datadir)/zsh/site-functions
fishcompdir ?= $(datadir)/fish/vendor_completions.d

.PHONY: tools
tools: $(TOOL) $(TOOL_MAN) $(TOOL_COMPLETIONS) ## build the shardpack command, its manual pages and completions

$(TOOL): $(TOOL_OBJ) $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $(TOOL_OBJ) $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

$(BUILD)/man/shardpack.1: $(TOOL)
	@mkdir -p $(@D)
	$(Q)$(TOOL) help --man > $@.tmp && mv $@.tmp $@

$(BUILD)/man/shardpack-%.1: $(TOOL)
	@mkdir -p $(@D)
	$(Q)$(TOOL) help --man $* > $@.tmp && mv $@.tmp $@

$(BUILD)/completions/shardpack.%: $(TOOL)
	@mkdir -p $(@D)
	$(Q)$(TOOL) help --completion $* > $@.tmp && mv $@.tmp $@

.PHONY: install-tools
install-tools: tools
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(mandir)/man1
	install -d $(DESTDIR)$(bashcompdir) $(DESTDIR)$(zshcompdir) $(DESTDIR)$(fishcompdir)
	install -m 755 $(TOOL) $(DESTDIR)$(bindir)/shardpack
	install -m 644 $(TOOL_MAN) $(DESTDIR)$(mandir)/man1/
	install -m 644 $(BUILD)/completions/shardpack.bash $(DESTDIR)$(bashcompdir)/shardpack
	install -m 644 $(BUILD)/completions/shardpack.zsh $(DESTDIR)$(zshcompdir)/_shardpack
	install -m 644 $(BUILD)/completions/shardpack.fish $(DESTDIR)$(fishcompdir)/shardpack.fish

.PHONY: uninstall-tools
uninstall-tools:
	rm -f $(DESTDIR)$(bindir)/shardpack $(addprefix $(DESTDIR)$(mandir)/man1/,$(notdir $(TOOL_MAN))) \
	  $(DESTDIR)$(bashcompdir)/shardpack $(DESTDIR)$(zshcompdir)/_shardpack $(DESTDIR)$(fishcompdir)/shardpack.fish
